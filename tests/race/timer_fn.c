/* SPDX-License-Identifier: MIT */
/*
 * A timer's function comes after what was done before the timer was set, not after what follows.
 *
 * expect-race: body by main, fire by timer
 * procs: 1,2,4
 */
#include "race.h"

static void fire(void *arg)
{
    until(1);
    ++*(int *)arg;
    reached(2);
}

static void body(void)
{
    pirn_timer *t = pirn_after_func(PIRN_MS, fire, &n);
    n = 1;
    reached(1);
    until(2);
    pirn_timer_free(t);
}

RACE_MAIN(body)
