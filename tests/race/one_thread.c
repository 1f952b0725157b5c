/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that share a thread are not ordered by that.
 *
 * expect-race: add by first, add by second
 * expect-stderr-regex: goroutine \d+: first, one_thread.c:32'
 * expect-stderr: one_thread.c:33'
 * procs: 1,2,4
 */
#include "race.h"

static void add(void)
{
    n++;
}

static void first(void)
{
    add();
    reached(1);
}

static void second(void)
{
    until(1);
    add();
}

static void body(void)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, first);
    pirn_wg_go(&wg, second);
    pirn_wg_wait(&wg);
}

RACE_MAIN(body)
