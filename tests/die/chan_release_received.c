/* SPDX-License-Identifier: MIT */
/*
 * Who waits there could never go on: the message names the first, the report shows them all.
 * expect-exit: 2
 * expect-first-line: panic: release of the last reference to a channel on which goroutine 2 waits
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 * expect-stderr-regex: ^goroutine 2 \[chan receive.*\] receiver:$
 * expect-stderr-regex: ^goroutine 3 \[chan receive.*\] receiver:$
 * procs: 1
 */
#include <pirn.h>

static void receiver(pirn_chan(int) c)
{
    (void)pirn_chan_recv(c, NULL);
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(receiver, c);
    pirn_yield();
    pirn_go(receiver, c);
    pirn_yield();
    pirn_chan_release(c);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
