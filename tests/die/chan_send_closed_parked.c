/* SPDX-License-Identifier: MIT */
/*
 * One that waits to send when the channel is closed panics, not the one that closes.
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 * expect-stderr-regex: \Apanic: .*\n\ngoroutine 2 \[running\] sender:$
 * procs: 1,4
 */
#include <pirn.h>

static void sender(pirn_chan(int) c)
{
    pirn_chan_send(c, 1);
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
