/* SPDX-License-Identifier: MIT */
/*
 * A frame of a goroutine is used after it has returned, with a wait in between.
 * expect-exit: 1
 * expect-stderr: ERROR: AddressSanitizer: stack-use-after-return
 * expect-stderr-regex: #\d+ 0x[0-9a-f]+ in start
 * env: ASAN_OPTIONS=detect_stack_use_after_return=1
 * procs: 1,4
 */
#include <pirn.h>

static int *escaped;

static __attribute__((noinline)) void leaves(void)
{
    volatile int local = 1;
    escaped = (int *)&local;
    pirn_yield();
}

static int start(void *arg)
{
    (void)arg;
    leaves();
    pirn_sleep(PIRN_MS);
    return *(volatile int *)escaped;
}

int main(void)
{
    return pirn_run(start, NULL);
}
