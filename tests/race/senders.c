/* SPDX-License-Identifier: MIT */
/*
 * A channel orders senders before receivers, not senders with each other.
 *
 * expect-race: sender by sender, sender by sender
 * procs: 1,2,4
 */
#include "race.h"

static void sender(pirn_chan(int) c, bool waits)
{
    if (waits) {
        until(1);
    }
    n++;
    reached(1);
    pirn_chan_send(c, 1);
}

static void body(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_go(sender, c, false);
    pirn_go(sender, c, true);
    (void)pirn_chan_get(c);
    (void)pirn_chan_get(c);
}

RACE_MAIN(body)
