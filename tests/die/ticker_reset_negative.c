/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: non-positive interval for Ticker.Reset
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_ticker_reset(pirn_ticker_new(1), -1);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
