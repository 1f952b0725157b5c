/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_chan_close(c);
    pirn_chan_send(c, 1);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
