/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: retain of a channel after its last release
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 * procs: 1
 */
#include <pirn.h>

/* It waits on both, is served by b, and comes back to a later: until then a is not freed. */
static void selects(pirn_chan(int) a, pirn_chan(int) b)
{
    (void)pirn_select(PIRN_RECV(a, NULL), PIRN_RECV(b, NULL));
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) a = pirn_chan_make(int, 0), b = pirn_chan_make(int, 0);
    pirn_go(selects, a, b);
    pirn_yield();
    (void)pirn_chan_try_send(b, 1);
    pirn_chan_release(a);
    (void)pirn_chan_retain(a);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
