/* SPDX-License-Identifier: MIT */
/*
 * The value belongs to the receiver when it has been sent.
 *
 * expect-race: sender by sender, body by main
 * procs: 1,2,4
 */
#include "race.h"

static void sender(pirn_chan(int *) c)
{
    n = 1;
    pirn_chan_send(c, &n);
    n = 2;
    reached(1);
}

static void body(void)
{
    pirn_chan(int *) c = pirn_chan_make(int *, 0);
    pirn_go(sender, c);
    int *p = pirn_chan_get(c);
    until(1);
    ++*p;
}

RACE_MAIN(body)
