/* SPDX-License-Identifier: MIT */
/*
 * Wait groups, without what surrounds the calls of foreign threads; and who finds the word lock held
 * spins. See waitgroup.h.
 */
#include "waitgroup.h"
#include "foreign_lean.h"
#include "word_spin.h"

/* --- two wait ------------------------------------------------------------------------------------------- */

static void one_done_two_waits(void)
{
    begin(1, 2);
}

WAITGROUP(two_wait, one_done_two_waits, at_rest, done, wait, wait)

/* --- used again after the wait ---------------------------------------------------------------------------- */

static at_u32 round2;

static void again(void)
{
    one_done();
    at_store(&round2, 0, RELAXED);
}

static void wait_add_wait(void)
{
    pirn_wg_wait(wg);
    check_work();
    pirn_wg_add(wg, 1);
    at_store(&round2, 1, RELEASE);
    pirn_wg_wait(wg);
    CHECK(work[1] == 1);
    free(wg);
}

static void done_in_round_two(void)
{
    while (!at_load(&round2, ACQUIRE)) {
        at_pause();
    }
    done();
}

WAITGROUP(reuse, again, at_rest, done, done_in_round_two, wait_add_wait)
