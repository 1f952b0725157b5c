/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that were ended deep in their calls leave nothing behind in the stacks of those who come
 * after them.
 *
 * expect-race: add by racer, add by racer
 * expect-no-stderr: deep
 * procs: 2
 */
#include "race.h"

__attribute__((noinline)) static void deep(int more)
{
    if (more > 0) {
        deep(more - 1);
        n = more; /* never: so that this is no tail call */
    } else if (pirn_id()) {
        pirn_exit();
    }
}

static void add(void)
{
    n++;
}

static void racer(bool waits)
{
    if (waits) {
        until(1);
    }
    add();
    reached(1);
}

static void body(void)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 1050; i++) {
        pirn_wg_go(&wg, deep, 10);
        pirn_wg_wait(&wg);
    }
    pirn_wg_go(&wg, racer, false);
    pirn_wg_go(&wg, racer, true);
    pirn_wg_wait(&wg);
}

RACE_MAIN(body)
