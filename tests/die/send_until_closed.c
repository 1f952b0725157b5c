/* SPDX-License-Identifier: MIT */
/*
 * It waits, with a deadline, and the channel is closed: no error code says that, as for any send.
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 * procs: 1,4
 */
#include <pirn.h>

static void close_it(pirn_chan(int) c)
{
    pirn_sleep(PIRN_MS);
    pirn_chan_close(c);
}

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(close_it, c);
    return pirn_chan_send_until(c, 1, pirn_deadline(3600 * PIRN_SEC));
}

int main(void)
{
    return pirn_run(start, NULL);
}
