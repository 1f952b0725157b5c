/* SPDX-License-Identifier: MIT */
/*
 * Timers that one thread fires do not order those who wait for them.
 *
 * expect-race: waiter by waiter, body by main
 * procs: 1,2,4
 */
#include "race.h"

static void waiter(void)
{
    n = 1;
    pirn_chan(pirn_ns) c = pirn_after(5 * PIRN_MS);
    (void)pirn_chan_get(c);
    pirn_chan_release(c);
    reached(1);
}

static void body(void)
{
    pirn_go(waiter);
    until(1);
    n = 2;
}

RACE_MAIN(body)
