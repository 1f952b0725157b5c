/* SPDX-License-Identifier: MIT */
/*
 * One locks, the other one does not.
 *
 * expect-race: careful by careful, careless by careless
 * procs: 1,2,4
 */
#include "race.h"

static pirn_mutex m;
static void careful(void)
{
    pirn_mutex_lock(&m);
    n++;
    pirn_mutex_unlock(&m);
    reached(1);
}

static void careless(void)
{
    until(1);
    n++;
}

static void body(void)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, careful);
    pirn_wg_go(&wg, careless);
    pirn_wg_wait(&wg);
}

RACE_MAIN(body)
