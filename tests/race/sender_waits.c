/* SPDX-License-Identifier: MIT */
/*
 * A sender waits, for the buffer is full. Who receives what was there before has not received its
 * value.
 *
 * expect-race: sender by sender, body by main
 * procs: 1,2,4
 */
#include "race.h"

static void sender(pirn_chan(int) c)
{
    n = 1;
    reached(1);
    pirn_chan_send(c, 2);
}

static void body(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_chan_send(c, 1);
    pirn_go(sender, c);
    until(1);
    later();
    (void)pirn_chan_get(c);
    n = 2;
}

RACE_MAIN(body)
