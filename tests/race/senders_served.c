/* SPDX-License-Identifier: MIT */
/*
 * The same where a receiver waits for each: what the first one did is not ordered before what the
 * second does after its send, as long as there is room for three.
 *
 * expect-race: sender by sender, sender by sender
 * procs: 1,2,4
 */
#include "race.h"

static void sender(pirn_chan(int) c, bool waits)
{
    later();
    if (waits) {
        until(1);
        later();
        pirn_chan_send(c, 1);
        n++;
    } else {
        n++;
        pirn_chan_send(c, 1);
        reached(1);
    }
}

static void receiver(pirn_chan(int) c)
{
    while (pirn_chan_recv(c, NULL)) {
    }
}

static void body(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 3);
    pirn_wg wg = {0};
    pirn_go(receiver, c);
    pirn_wg_go(&wg, sender, c, false);
    pirn_wg_go(&wg, sender, c, true);
    pirn_wg_wait(&wg);
}

RACE_MAIN(body)
