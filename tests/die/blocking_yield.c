/* SPDX-License-Identifier: MIT */
/*
 * A call into pirn between begin and end.
 * expect-exit: 2
 * expect-stderr-regex: ^(panic|fatal error): .*pirn_blocking_begin
 * expect-stderr-regex: ^goroutine 1 \[.*\] main:$
 * procs: 1,4
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_blocking_begin();
    pirn_yield();
    pirn_blocking_end();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
