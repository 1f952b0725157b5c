/* SPDX-License-Identifier: MIT */
/*
 * A channel that is notified must be stopped before it is closed.
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 */
#include <signal.h>

#include <pirn.h>

static int start(void *arg)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    (void)arg;
    if (pirn_signal_notify(c, SIGUSR1))
        return 1;
    pirn_chan_close(c);
    raise(SIGUSR1);
    pirn_sleep(20 * PIRN_SEC);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
