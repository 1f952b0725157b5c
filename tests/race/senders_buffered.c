/* SPDX-License-Identifier: MIT */
/*
 * Nor do those who use one place of the buffer after the other order who uses another place.
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
    pirn_chan_send(c, 1);
    n++;
    pirn_chan_send(c, 1);
    reached(1);
}

static void body(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 4);
    pirn_wg wg = {0};
    pirn_wg_go(&wg, sender, c, false);
    pirn_wg_go(&wg, sender, c, true);
    pirn_wg_wait(&wg);
}

RACE_MAIN(body)
