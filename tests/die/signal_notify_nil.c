/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: signal notify using nil channel
 */
#include <signal.h>

#include <pirn.h>

static int start(void *arg)
{
    pirn_chan(int) c = NULL;
    (void)arg;
    return pirn_signal_notify(c, SIGUSR1);
}

int main(void)
{
    return pirn_run(start, NULL);
}
