/* SPDX-License-Identifier: MIT */
/*
 * A goroutine that ended hundreds of goroutines ago still has its name, and is no other one.
 *
 * expect-race: culprit by culprit, body by main
 * procs: 1,2,4
 */
#include "race.h"

static void culprit(void)
{
    n = 1;
    reached(1);
}

static void nothing(void)
{
}

static void body(void)
{
    pirn_wg wg = {0};
    pirn_go(culprit);
    until(1);
    for (int i = 0; i < 300; i++) {
        pirn_wg_go(&wg, nothing);
        pirn_wg_wait(&wg);
    }
    n = 2;
}

RACE_MAIN(body)
