/* SPDX-License-Identifier: MIT */
/*
 * An end in the function of pirn_blocking, which has begun nothing.
 * expect-exit: 2
 * expect-stderr-regex: ^(panic|fatal error): pirn_blocking_end
 * expect-stderr-regex: ^goroutine 1 \[running.*\] main:$
 * procs: 1,4
 */
#include <pirn.h>

static void *ends(void *arg)
{
    pirn_blocking_end();
    return arg;
}

static int start(void *arg)
{
    pirn_blocking(ends, arg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
