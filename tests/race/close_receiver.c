/* SPDX-License-Identifier: MIT */
/*
 * A close comes before the receive that it ends, and not after it.
 *
 * expect-race: receiver by receiver, body by main
 * procs: 1,2,4
 */
#include "race.h"

static void receiver(pirn_chan(int) c)
{
    n = 1;
    reached(1);
    (void)pirn_chan_get(c);
}

static void body(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(receiver, c);
    until(1);
    later();
    pirn_chan_close(c);
    n = 2;
}

RACE_MAIN(body)
