/* SPDX-License-Identifier: MIT */
/*
 * Models of wait groups: a wait returns when the count is zero and not before, with everything seen
 * that was done before the dones; every waiter is woken; and the group may be freed as soon as all
 * waits on it have returned, while the done that ended them is still under way. Goroutines appear as
 * wait records: they are made ready exactly once.
 *
 * The waiters are threads that pirn did not make. waitgroup_foreign.c has all that surrounds their
 * calls; waitgroup.c leaves that out, for larger models.
 */
#ifndef TESTS_MODEL_WAITGROUP_H
#define TESTS_MODEL_WAITGROUP_H

#include <stdlib.h>

#include "foreign_only.h"

static pirn_wg *wg;
static int work[MODEL_THREADS];
static at_u32 waits; /* that have not returned */
static struct g gs[2];

/* --- foreign threads ----------------------------------------------------------------------------------- */

static int dones;

static void begin(int count, uint32_t waiters)
{
    memset(&sched.globq, 0, sizeof sched.globq);
    at_store(&sched.lock.state, 0, RELAXED);
    memset(gs, 0, sizeof gs);
    memset(work, 0, sizeof work);
    at_store(&sched.life, LIFE_RUNNING, RELAXED);
    at_store(&sched.nforeign, 0, RELAXED);
    at_store(&sched.nforeign_parked, 0, RELAXED);
    at_store(&waits, waiters, RELAXED);
    dones = count;
    wg = calloc(1, sizeof *wg);
    pirn_wg_add(wg, count);
}

static void one_done(void)
{
    begin(1, 1);
}
static void two_dones(void)
{
    begin(2, 1);
}

static void at_rest(void)
{
    CHECK(at_load(&sched.nforeign, RELAXED) == 0);
    CHECK(at_load(&sched.nforeign_parked, RELAXED) == 0);
}

/* Threads that call done are the first ones. */
static void done(void)
{
    work[model_self()] = 1;
    pirn_wg_done(wg);
}

static void check_work(void)
{
    for (int i = 0; i < dones; i++) {
        CHECK(work[i] == 1);
    }
}

/* The last to return frees the group. */
static void wait(void)
{
    pirn_wg_wait(wg);
    check_work();
    if (at_add(&waits, (uint32_t)-1, ACQ_REL) == 1) {
        free(wg);
    }
}

/* Adding while it is above zero, when somebody waits already. */
static void add_and_done_twice(void)
{
    work[model_self()] = 1;
    pirn_wg_add(wg, 1);
    pirn_wg_done(wg);
    pirn_wg_done(wg);
}

/* --- goroutines that wait ---------------------------------------------------------------------------------- */

/* As pirn_wg_wait leaves it: at the end of the ring, with the flag in the state. */
static void parked(struct g *gp)
{
    struct waiter *w = &gp->run.waiter, *last = wg->waiters_;
    w->g = gp;
    w->object = wg;
    w->next = last ? last->next : w;
    if (last) {
        last->next = w;
    }
    wg->waiters_ = w;
    wg->state_ |= 4;
    at_store(&gp->status, G_WAITING, RELAXED);
}

static void two_dones_one_g(void)
{
    two_dones();
    parked(&gs[0]);
}

static void one_done_two_gs(void)
{
    one_done();
    parked(&gs[0]);
    parked(&gs[1]);
}

/* In the order in which they began to wait. */
static void all_runnable(void)
{
    int n = 0;
    for (struct g *gp; (gp = glist_get(&sched.globq.list)); n++) {
        CHECK(gp == &gs[n] && at_load(&gp->status, RELAXED) == G_RUNNABLE);
    }
    CHECK(at_load(&sched.globq.size, RELAXED) == (uint32_t)n);
    CHECK(n == 1 + (gs[1].run.waiter.g != NULL));
    at_rest();
}

static void all_runnable_and_free(void)
{
    all_runnable();
    free(wg);
}

#define WAITGROUP(mname, setup_, finish_, ...)                                                     \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED)

MODEL(done_wait, .setup = one_done, .finish = at_rest, .threads = {done, wait}, .spurious = 2,
      .preemptions = MODEL_UNBOUNDED)
WAITGROUP(two_done, two_dones, at_rest, done, done, wait)
WAITGROUP(add_wait, one_done, at_rest, add_and_done_twice, wait)
WAITGROUP(add_done_wait, two_dones, at_rest, add_and_done_twice, done, wait)
WAITGROUP(two_done_g, two_dones_one_g, all_runnable_and_free, done, done)
WAITGROUP(done_wait_and_gs, one_done_two_gs, all_runnable, done, wait)

#endif
