/* SPDX-License-Identifier: MIT */
/*
 * The case that is ready is the one that panics, also beside a default.
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = pirn_chan_make(int, 0), d = pirn_chan_make(int, 0);
    int v;
    pirn_chan_close(c);
    switch (pirn_select(PIRN_RECV(d, &v), PIRN_SEND(c, 1), PIRN_DEFAULT)) {
    default: break;
    }
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
