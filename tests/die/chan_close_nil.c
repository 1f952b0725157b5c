/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: close of nil channel
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_chan(int) c = NULL;
    pirn_chan_close(c);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
