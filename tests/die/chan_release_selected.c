/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: release of the last reference to a channel on which goroutine 2 waits
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 * expect-stderr-regex: ^goroutine 2 \[select.*\] selects:$
 * procs: 1
 */
#include <pirn.h>

static void selects(pirn_chan(int) c)
{
    pirn_chan(int) never = pirn_chan_make(int, 0);
    (void)pirn_select(PIRN_RECV(never, NULL), PIRN_RECV(c, NULL));
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(selects, c);
    pirn_yield();
    pirn_chan_release(c);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
