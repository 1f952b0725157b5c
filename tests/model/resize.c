/* SPDX-License-Identifier: MIT */
/*
 * The number of Ps changes while Ms run, steal and sleep: no goroutine is lost with a P that
 * retires, and in the end there are as many Ps as were asked for, all idle.
 */
#define MACHINE_FACTORY
#include "machine.h"

int stack_room_for_procs(uint32_t n)
{
    (void)n;
    return 0;
}

void stack_flush(struct p *pp)
{
    (void)pp;
}

void g_flush(struct p *pp)
{
    (void)pp;
}

/* An M that has just lost its P is not on the list yet, so a P may find none. No thread can be made
 * here: as in factory.c, the P becomes idle again. */
void factory_want_locked(struct p *pp, struct g *gp, bool spinning)
{
    CHECK(!gp);
    p_put_back_locked(pp);
    if (spinning) {
        at_store(&sched.nspinning, 0, RELEASE);
    }
}

static void queue(int p, int i)
{
    runq_put_owner(&ps[p].runq, new_g(i));
}

static int wanted;

static void resized(void)
{
    all_at_rest();
    CHECK(at_load(&sched.nprocs, RELAXED) == (uint32_t)wanted);
    uint32_t idle = 0;
    for (struct p *pp = sched.pidle; pp; pp = pp->link) {
        CHECK(at_load(&pp->status, RELAXED) == P_IDLE);
        CHECK(!at_load(&pp->retire, RELAXED));
        CHECK(runq_empty(&pp->runq));
        idle++;
    }
    CHECK(idle == (uint32_t)wanted);
}

/* Nothing is lost: what has not run is still in a queue, and only there. */
static void none_lost(void)
{
    struct g *gp;
    for (int i = 0; i < PS; i++) {
        while ((gp = runq_take_next_owner(&ps[i].runq)) || (gp = runq_get_owner(&ps[i].runq))) {
            CHECK(at_load(&ps[i].status, RELAXED) == P_RUNNING);
            gp->creator++;
        }
    }
    while ((gp = glist_get(&sched.globq.list))) {
        gp->creator++;
    }
    each_ran_once();
    CHECK(at_load(&sched.nprocs, RELAXED) == (uint32_t)wanted);
}

static void busy_shrinks(void)
{
    set_current_m(&ms[0]);
    p_resize(1, &ps[0], false);
}

static void busy_shrinks_and_grows(void)
{
    busy_shrinks();
    p_resize(2, &ps[0], false);
}

static void shrinks(struct m *mp)
{
    p_resize(1, mp->p, false);
}

static void grows(struct m *mp)
{
    runq_submit(mp->p, new_g(1), false);
    p_resize(2, mp->p, false);
    wait_for(1);
}

/* The other M runs, with two Gs in its ring and one in runnext. */
static void setup_shrink(void)
{
    machine_setup(2);
    wanted = 1;
    queue(1, 0);
    queue(1, 1);
    runq_put_next_owner(&ps[1].runq, new_g(2));
}

static void setup_shrink_idle(void)
{
    machine_setup(2);
    machine_idle(1);
    wanted = 1;
    body[0] = shrinks;
    queue(0, 0);
}

static void setup_grow(void)
{
    machine_setup_one_p();
    wanted = 2;
    body[0] = grows;
    queue(0, 0);
}

static void setup_both(void)
{
    setup_shrink();
    wanted = 2;
}

/* A P that never was before: who walks over all Ps meets it whole, or not at all. */
static void setup_new(void)
{
    machine_setup_one_p();
    at_store(&sched.nallp, 1, RELAXED);
    at_store(&sched.allp[1], NULL, RELAXED);
    wanted = 2;
    queue(0, 0);
}

static void foreign_grows(void)
{
    p_resize(2, NULL, false);
}

static void foreign_shrinks(void)
{
    p_resize(1, NULL, false);
}

static void setup_foreign_shrinks(void)
{
    machine_setup(2);
    wanted = 1;
    queue(1, 0);
}

#define RESIZE(mname, setup_, ...)                                                                 \
    MODEL(mname, .setup = setup_, .finish = resized, .sleepers = 7, .threads = {__VA_ARGS__},      \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

#define LOSE_NONE(mname, setup_, ...)                                                              \
    MODEL(mname, .setup = setup_, .finish = none_lost, .sleepers = 7, .threads = {__VA_ARGS__},    \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

LOSE_NONE(shrink_under_work, setup_shrink, busy_shrinks, m1)
LOSE_NONE(shrink_and_grow, setup_both, busy_shrinks_and_grows, m1)
RESIZE(shrink_idle, setup_shrink_idle, m0, m1)
RESIZE(grow_under_work, setup_grow, m0, m1)
MODEL(grow_by_a_new_p, .setup = setup_new, .finish = resized, .sleepers = 7, .leaks = true,
      .threads = {m0, m1, foreign_grows}, .preemptions = MODEL_UNBOUNDED, .quick = 2)
RESIZE(shrink_by_foreign, setup_foreign_shrinks, m0, m1, foreign_shrinks)
