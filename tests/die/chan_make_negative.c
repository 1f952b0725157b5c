/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: makechan: size out of range
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    int n = -1;
    pirn_chan(char) c = pirn_chan_make(char, n);
    pirn_chan_release(c);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
