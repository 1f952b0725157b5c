/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[select \(no cases\)(, \d+ .*)?\] main:$
 * procs: 1,4
 * timeout: 10
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    (void)pirn_selectv(NULL, 0);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
