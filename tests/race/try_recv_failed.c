/* SPDX-License-Identifier: MIT */
/*
 * A receive that fails orders nothing.
 *
 * expect-race: sender by sender, body by main
 * procs: 1,2,4
 */
#include "race.h"

static void sender(pirn_chan(int) c)
{
    n = 1;
    reached(1);
    until(2);
    pirn_chan_send(c, 1);
}

static void body(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_go(sender, c);
    until(1);
    if (pirn_chan_try_recv(c, NULL) == 0) {
        n = 2;
    }
    reached(2);
}

RACE_MAIN(body)
