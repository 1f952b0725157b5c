/* SPDX-License-Identifier: MIT */
/*
 * One frame that is larger than all of the stack.
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: stack overflow: goroutine \d+ outgrew its stack of 262144 bytes; raise \.stack_size$
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include <pirn.h>
#include <string.h>

static __attribute__((noinline)) void large(void)
{
    char frame[300 << 10];
    memset(frame, 7, sizeof frame);
    __asm__ volatile("" ::"r"(frame) : "memory");
}

static int start(void *arg)
{
    (void)arg;
    large();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
