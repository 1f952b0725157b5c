/* SPDX-License-Identifier: MIT */
/*
 * The mutex orders what is done under it, the signal what was done before it.
 *
 * expect-race: body by main, waiter by waiter
 * procs: 1,2,4
 */
#include "race.h"

static pirn_mutex m;
static pirn_cond c;
static void waiter(pirn_wg *wg)
{
    pirn_mutex_lock(&m);
    reached(1);
    pirn_cond_wait(&c, &m);
    pirn_mutex_unlock(&m);
    until(2);
    n++;
    pirn_wg_done(wg);
}

static void body(void)
{
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    pirn_go(waiter, &wg);
    until(1);
    pirn_mutex_lock(&m); /* it waits now */
    pirn_mutex_unlock(&m);
    pirn_cond_signal(&c);
    n = 1;
    reached(2);
    pirn_wg_wait(&wg);
}

RACE_MAIN(body)
