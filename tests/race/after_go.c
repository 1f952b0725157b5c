/* SPDX-License-Identifier: MIT */
/*
 * What the parent does after pirn_go is not ordered with the child.
 *
 * expect-race: body by main, child by child
 * procs: 1,2,4
 */
#include "race.h"

static void child(void)
{
    until(1);
    n = 1;
}

static void body(void)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, child);
    n = 2;
    reached(1);
    pirn_wg_wait(&wg);
}

RACE_MAIN(body)
