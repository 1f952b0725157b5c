/* SPDX-License-Identifier: MIT */
/*
 * A try_lock that fails orders nothing.
 *
 * expect-race: holder by holder, body by main
 * procs: 1,2,4
 */
#include "race.h"

static pirn_mutex m;
static void holder(pirn_chan(int) c)
{
    pirn_mutex_lock(&m);
    n = 1;
    reached(1);
    (void)pirn_chan_get(c);
}

static void body(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(holder, c);
    until(1);
    if (!pirn_mutex_try_lock(&m)) {
        n = 2;
    }
    pirn_chan_close(c);
}

RACE_MAIN(body)
