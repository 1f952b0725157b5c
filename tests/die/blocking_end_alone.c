/* SPDX-License-Identifier: MIT */
/*
 * An end without a begin.
 * expect-exit: 2
 * expect-stderr-regex: ^(panic|fatal error): pirn_blocking
 * expect-stderr-regex: ^goroutine 1 \[running.*\] main:$
 * procs: 1,4
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_blocking_end();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
