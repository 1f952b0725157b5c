/* SPDX-License-Identifier: MIT */
/*
 * Main ends itself, another goroutine waits for ever.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine \d+ \[wait group wait.*\] waiter:\n(\t.*\n)+\tcreated by goroutine 1 at .*main_exit_others_wait\.c:101$
 * procs: 1,4
 * timeout: 10
 */
#include <pirn.h>

static pirn_wg never;

static void waiter(void)
{
    pirn_wg_wait(&never);
}

static int start(void *arg)
{
    (void)arg;
    pirn_wg_add(&never, 1);
#line 101 /* what the report must name, however the file is formatted */
    pirn_go(waiter);
    pirn_exit();
}

int main(void)
{
    return pirn_run(start, NULL);
}
