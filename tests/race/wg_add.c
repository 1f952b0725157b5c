/* SPDX-License-Identifier: MIT */
/*
 * A wait comes after every done, not after an add.
 *
 * expect-race: adder by adder, body by main
 * procs: 1,2,4
 */
#include "race.h"

static pirn_wg wg;
static void adder(void)
{
    n = 1;
    pirn_wg_add(&wg, 1);
    reached(1);
}

static void body(void)
{
    pirn_go(adder);
    until(1);
    pirn_wg_done(&wg);
    pirn_wg_wait(&wg);
    n = 2;
}

RACE_MAIN(body)
