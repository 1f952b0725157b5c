/* SPDX-License-Identifier: MIT */
/*
 * Readers are not ordered with each other.
 *
 * expect-race: reader by reader, reader by reader
 * procs: 1,2,4
 */
#include "race.h"

static pirn_rwmutex m;
static void reader(bool waits)
{
    if (waits) {
        until(1);
    }
    pirn_rwmutex_rlock(&m);
    n++;
    pirn_rwmutex_runlock(&m);
    reached(1);
}

static void body(void)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, reader, false);
    pirn_wg_go(&wg, reader, true);
    pirn_wg_wait(&wg);
}

RACE_MAIN(body)
