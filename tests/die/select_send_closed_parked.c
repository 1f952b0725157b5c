/* SPDX-License-Identifier: MIT */
/*
 * A select that waits to send when one of its channels is closed.
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 * expect-stderr-regex: \Apanic: .*\n\ngoroutine 2 \[running\] sender:$
 * procs: 1,4
 */
#include <pirn.h>

static void sender(pirn_chan(int) c)
{
    pirn_chan(int) never = pirn_chan_make(int, 0);
    (void)pirn_select(PIRN_RECV(never, NULL), PIRN_SEND(c, 1));
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(sender, c);
    for (int i = 0; i < 100; i++) {
        pirn_yield();
    }
    pirn_chan_close(c);
    pirn_exit();
}

int main(void)
{
    return pirn_run(start, NULL);
}
