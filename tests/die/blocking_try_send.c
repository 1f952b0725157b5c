/* SPDX-License-Identifier: MIT */
/*
 * So is one that finds all as it needs it.
 * expect-exit: 2
 * expect-stderr-regex: ^(panic|fatal error): .*pirn_blocking_begin
 * expect-stderr-regex: ^goroutine 1 \[.*\] main:$
 * procs: 1,4
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_blocking_begin();
    (void)pirn_chan_try_send(c, 1);
    pirn_blocking_end();
    pirn_chan_release(c);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
