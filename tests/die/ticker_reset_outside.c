/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: a timer is set, and no runtime runs
 */
#include <pirn.h>

static pirn_ticker *ticker;

static int start(void *arg)
{
    (void)arg;
    ticker = pirn_ticker_new(PIRN_SEC);
    return 0;
}

int main(void)
{
    if (pirn_run(start, NULL)) {
        return 1;
    }
    pirn_ticker_stop(ticker);
    pirn_ticker_reset(ticker, 1);
    return 0;
}
