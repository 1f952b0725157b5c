/* SPDX-License-Identifier: MIT */
/*
 * A call that does not park is one, too.
 * expect-exit: 2
 * expect-stderr-regex: ^(panic|fatal error): .*pirn_blocking_begin
 * expect-stderr-regex: ^goroutine 1 \[.*\] main:$
 * procs: 1,4
 */
#include <pirn.h>

static void nothing(void)
{
}

static int start(void *arg)
{
    (void)arg;
    pirn_blocking_begin();
    pirn_go(nothing);
    pirn_blocking_end();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
