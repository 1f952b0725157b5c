/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: release of the last reference to a channel on which goroutine 2 waits
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 * expect-stderr-regex: ^goroutine 2 \[chan send.*\] sender:$
 * procs: 1
 */
#include <pirn.h>

static void sender(pirn_chan(int) c)
{
    pirn_chan_send(c, 1);
    pirn_chan_send(c, 2);
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_go(sender, pirn_chan_retain(c));
    pirn_yield();
    pirn_chan_release(c);
    pirn_chan_release(c);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
