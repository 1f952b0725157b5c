/* SPDX-License-Identifier: MIT */
/*
 * Not recursive.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[mutex lock(, \d+ .*)?\] main:$
 * procs: 1,4
 * timeout: 10
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_mutex m = {0};
    pirn_mutex_lock(&m);
    pirn_mutex_lock(&m);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
