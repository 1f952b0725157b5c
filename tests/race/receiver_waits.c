/* SPDX-License-Identifier: MIT */
/*
 * A channel with a buffer orders the receiver after the sender; what a receiver did before it waited
 * is not ordered before what the sender does next.
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
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_go(receiver, c);
    until(1);
    later();
    pirn_chan_send(c, 1);
    n = 2;
}

RACE_MAIN(body)
