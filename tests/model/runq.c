/* SPDX-License-Identifier: MIT */
/*
 * The run queue: every G that is put is taken exactly once, by somebody who sees what was written
 * to it before. The ring has 4 slots here, so it is soon full.
 */
#include "explorer/model.h"
#include "sched/sched.h"

#define GS 8

static struct runq q, mine[2]; /* mine: the rings of the thieves */
static struct g gs[GS];
static int made;

static void setup(void)
{
    memset(&q, 0, sizeof q);
    memset(mine, 0, sizeof mine);
    memset(gs, 0, sizeof gs);
    made = 0;
}

/* A new G: what is written here must be seen by whoever takes it. */
static struct g *make_g(void)
{
    struct g *gp = &gs[made++];
    gp->id = 7;
    return gp;
}

static void setup_full(void)
{
    setup();
    for (int i = 0; i < 4; i++) {
        CHECK(runq_put_owner(&q, make_g()));
    }
}

static void taken(struct g *gp)
{
    if (gp) {
        CHECK(gp->id == 7);
        gp->creator++; /* a race if two have it */
    }
}

static void put(void)
{
    struct g *gp = make_g();
    struct glist rest = {0};
    while (!runq_put_owner(&q, gp)) {
        if (runq_put_full_owner(&q, gp, &rest)) {
            break;
        }
    }
    for (struct g *other; (other = glist_get(&rest));) {
        taken(other); /* the global queue would have it */
    }
}

static void put_next(void)
{
    struct g *old = runq_put_next_owner(&q, make_g());
    if (old) {
        CHECK(runq_put_owner(&q, old));
    }
}

static void drain(struct runq *from)
{
    for (struct g *gp; (gp = runq_take_next_owner(from)) || (gp = runq_get_owner(from));) {
        taken(gp);
    }
}

/* Everything that is left is taken by the end, so each G was taken once. */
static void finish(void)
{
    CHECK(runq_valid(&q));
    drain(&q);
    drain(&mine[0]);
    drain(&mine[1]);
    for (int i = 0; i < made; i++) {
        CHECK(gs[i].creator == 1);
    }
}

/* --- the ring -------------------------------------------------------------------------------------- */

static void owner_puts_and_gets(void)
{
    put();
    put();
    taken(runq_get_owner(&q));
    put();
    taken(runq_get_owner(&q));
}

static void steal_into(struct runq *ring)
{
    uint32_t n = 0;
    taken(runq_steal(ring, &q, &n));
    drain(ring);
}

static void thief(void)
{
    steal_into(&mine[0]);
}

static void thief2(void)
{
    steal_into(&mine[1]);
}

static void thief_twice(void)
{
    steal_into(&mine[0]);
    steal_into(&mine[0]);
}

MODEL(steal, .setup = setup, .finish = finish, .threads = {owner_puts_and_gets, thief},
      .preemptions = MODEL_UNBOUNDED)
MODEL(steal_twice, .setup = setup, .finish = finish, .threads = {owner_puts_and_gets, thief_twice},
      .preemptions = MODEL_UNBOUNDED, .quick = 3)
MODEL(two_thieves, .setup = setup, .finish = finish,
      .threads = {owner_puts_and_gets, thief, thief2}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- the ring full: overflow, and slots used again --------------------------------------------------- */

static void owner_overflows(void)
{
    put();
    taken(runq_get_owner(&q));
    put();
}

static void owner_wraps(void)
{
    taken(runq_get_owner(&q));
    put();
    taken(runq_get_owner(&q));
    put();
}

MODEL(overflow, .setup = setup_full, .finish = finish, .threads = {owner_overflows, thief},
      .preemptions = MODEL_UNBOUNDED)
/* From an empty ring: the thief may know of no put. */
static void owner_fills(void)
{
    for (int i = 0; i < 5; i++) {
        put();
    }
}

MODEL(fill_and_overflow, .setup = setup, .finish = finish, .threads = {owner_fills, thief},
      .preemptions = MODEL_UNBOUNDED)
MODEL(overflow_two_thieves, .setup = setup_full, .finish = finish,
      .threads = {owner_overflows, thief, thief2}, .preemptions = MODEL_UNBOUNDED, .quick = 2)
MODEL(wrap, .setup = setup_full, .finish = finish, .threads = {owner_wraps, thief_twice},
      .preemptions = MODEL_UNBOUNDED, .quick = 3)

/* A thief puts what it stole into a ring from which a third steals. */
static void thief_of_thief(void)
{
    uint32_t n = 0;
    taken(runq_steal(&mine[1], &mine[0], &n));
    drain(&mine[1]);
}

static void thief_keeps(void)
{
    uint32_t n = 0;
    taken(runq_steal(&mine[0], &q, &n));
}

MODEL(stolen_again, .setup = setup_full, .finish = finish,
      .threads = {owner_wraps, thief_keeps, thief_of_thief}, .preemptions = MODEL_UNBOUNDED,
      .quick = 2)

/* --- runnext ------------------------------------------------------------------------------------------ */

static void owner_next(void)
{
    put_next();
    put_next();
    taken(runq_take_next_owner(&q));
    taken(runq_get_owner(&q));
    put_next();
}

static void thief_next(void)
{
    struct g *gp = at_load(&q.next, RELAXED);
    taken(gp ? runq_steal_next(&q, gp) : NULL);
    steal_into(&mine[0]);
}

MODEL(next, .setup = setup, .finish = finish, .threads = {owner_next, thief_next},
      .preemptions = MODEL_UNBOUNDED)
MODEL(next_two_thieves, .setup = setup, .finish = finish,
      .threads = {owner_next, thief_next, thief2}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- runq_empty: there is a G in the queue all the time, so it is never empty ----------------------------- */

static void setup_next(void)
{
    setup();
    runq_put_next_owner(&q, make_g());
}

static void owner_moves(void)
{
    put_next(); /* moves the first to the ring */
    taken(runq_take_next_owner(&q));
    put_next();
    taken(runq_get_owner(&q));
}

static void observer(void)
{
    CHECK(!runq_empty(&q));
}

MODEL(never_empty, .setup = setup_next, .finish = finish, .threads = {owner_moves, observer},
      .preemptions = MODEL_UNBOUNDED)
MODEL(never_empty_thief, .setup = setup_full, .finish = finish,
      .threads = {owner_overflows, observer}, .preemptions = MODEL_UNBOUNDED)
