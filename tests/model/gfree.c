/* SPDX-License-Identifier: MIT */
/*
 * Gs: none is given out twice or lost between the lists of the Ps and the central one, none of their
 * ids is used twice, and who counts or walks over all of them meanwhile sees no G that is half made,
 * and never fewer than there are.
 */
#include "explorer/model.h"
#include "sched/sched.h"

struct sched sched;
ptrdiff_t m_tls_offset; /* 0: no thread is an M */
static struct p ps[2];
static at_u32 given;

void local_end(struct g *gp)
{
    model_fail("G %lu has values", gp->id);
}

void ctx_unref(struct pirn_ctx *ctx)
{
    model_fail("a G has context %p", (void *)ctx);
}

static void setup(void)
{
    memset(&sched, 0, sizeof sched);
    memset(ps, 0, sizeof ps);
    g_fini(true); /* the heap is new each time */
    at_store(&sched.next_id, 2, RELAXED);
    at_store(&sched.nallp, 2, RELAXED);
    at_store(&sched.allp[0], &ps[0], RELAXED);
    at_store(&sched.allp[1], &ps[1], RELAXED);
    at_store(&given, 0, RELAXED);
}

/* As spawn.c does: the G is counted, filled in, and then visible by its status. */
static struct g *begin(struct p *pp)
{
    struct g *gp = g_alloc(pp);
    CHECK(gp != NULL);
    gp->id = g_new_id(pp);
    at_count(&pp->counts.spawned, 1);
    at_store(&gp->status, G_RUNNABLE, RELEASE);
    gp->creator++; /* a race if two have it */
    return gp;
}

static void end(struct p *pp, struct g *gp)
{
    gp->creator--;
    CHECK(gp->creator == 0);
    g_free(pp, gp);
    at_store(&pp->counts.ended, at_load(&pp->counts.ended, RELAXED) + 1, RELEASE); /* [C1] */
}

static void uses(struct p *pp)
{
    struct g *a = begin(pp), *b = begin(pp), *c = begin(pp);
    CHECK(a != b && b != c && a->id != b->id && b->id != c->id);
    end(pp, a);
    end(pp, b);
    end(pp, c);
    g_flush(pp);
    CHECK(!pp->gfree && pp->ngfree == 0);
}

static void uses0(void)
{
    uses(&ps[0]);
}

static void uses1(void)
{
    uses(&ps[1]);
}

/* Begins on one P, ends on the other. */
static AT(struct g *) moved;

static void begins0(void)
{
    at_store(&moved, begin(&ps[0]), RELEASE);
}

static void ends1(void)
{
    struct g *gp;
    while (!(gp = at_load(&moved, ACQUIRE))) {
        at_pause();
    }
    end(&ps[1], gp);
}

static void setup_moved(void)
{
    setup();
    at_store(&moved, NULL, RELAXED);
}

static void counts(void)
{
    CHECK(g_count() <= 1); /* not 2^32 - 1 */
}

static void see(struct g *gp, void *arg)
{
    (void)arg;
    CHECK(gp->id >= 2);
    at_add(&given, 1, RELAXED);
}

static void walks(void)
{
    g_for_each(see, NULL);
    CHECK(at_load(&given, RELAXED) <= 1);
}

static void none(void)
{
    CHECK(g_count() == 0);
}

/* A P is made while somebody counts. */
static void setup_new_p(void)
{
    setup();
    at_store(&sched.nallp, 1, RELAXED);
    at_store(&sched.allp[1], NULL, RELAXED);
}

static void p_is_made(void)
{
    memset(&ps[1], 0, sizeof ps[1]);
    at_store(&sched.allp[1], &ps[1], RELAXED);
    at_store(&sched.nallp, 2, RELEASE); /* as in p.c */
    end(&ps[1], begin(&ps[1]));
}

static void counts_once(void)
{
    CHECK(g_count() <= 1);
}

#define GFREE(mname, setup_, ...)                                                                  \
    MODEL(mname, .setup = setup_, .finish = none, .leaks = true, .threads = {__VA_ARGS__},         \
          .preemptions = MODEL_UNBOUNDED, .quick = 3)

GFREE(two_ps, setup, uses0, uses1)
GFREE(count_while_one_moves, setup_moved, begins0, ends1, counts)
GFREE(count_while_a_p_is_made, setup_new_p, p_is_made, counts_once)
GFREE(walk_while_one_moves, setup_moved, begins0, ends1, walks)
