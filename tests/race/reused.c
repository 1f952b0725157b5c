/* SPDX-License-Identifier: MIT */
/*
 * Who woke a goroutine that has ended is not ordered before the next one that takes its place.
 *
 * expect-race: waker by waker, next by next
 * procs: 1,2,4
 */
#include "race.h"

static void sleeper(pirn_chan(int) c)
{
    (void)pirn_chan_get(c);
    reached(1);
}

static void waker(pirn_chan(int) c)
{
    n = 1;
    later();
    pirn_chan_send(c, 1);
}

static void next(void)
{
    n = 2;
}

static void body(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_wg wg = {0};
    pirn_go(sleeper, c);
    pirn_go(waker, c);
    until(1);
    later();
    for (int i = 0; i < 10; i++) {
        pirn_wg_go(&wg, next);
        pirn_wg_wait(&wg);
    }
}

RACE_MAIN(body)
