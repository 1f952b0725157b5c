/* SPDX-License-Identifier: MIT */
/*
 * A timer outlives its runtime, and may be stopped then, but not set.
 * expect-exit: 2
 * expect-first-line: panic: a timer is set, and no runtime runs
 */
#include <pirn.h>

static pirn_timer *timer;

static int start(void *arg)
{
    (void)arg;
    timer = pirn_timer_new(PIRN_SEC);
    return 0;
}

int main(void)
{
    if (pirn_run(start, NULL) || pirn_timer_stop(timer)) {
        return 1;
    }
    pirn_timer_reset(timer, 1);
    return 0;
}
