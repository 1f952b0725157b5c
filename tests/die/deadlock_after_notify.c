/* SPDX-License-Identifier: MIT */
/*
 * Who waits for signals is not in a deadlock; once nobody does any more, it is found again.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 */
#include <signal.h>

#include <pirn.h>

static int start(void *arg)
{
    pirn_chan(int) c = pirn_chan_make(int, 1), stopped = pirn_chan_make(int, 1);
    (void)arg;
    if (pirn_signal_notify(c, SIGUSR1) || pirn_signal_notify(stopped, SIGUSR2))
        return 1;
    pirn_signal_stop(stopped);
    pirn_signal_reset(SIGUSR1);
    pirn_chan_recv(c, NULL);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
