/* SPDX-License-Identifier: MIT */
/* The rest of the runtime, for models whose threads are all foreign: no goroutine ever runs. */
#ifndef TESTS_MODEL_FOREIGN_ONLY_H
#define TESTS_MODEL_FOREIGN_ONLY_H

#include "explorer/model.h"

#include "ctx/ctx.h"
#include "sched/switch.h"
#include "sync/chan.h"

struct sched sched = {.lock = LOCK_INIT(RANK_SCHED)};
ptrdiff_t m_tls_offset; /* 0: no thread is an M */

/* Of goroutines that run, and there are none. */
void m_leave_for_good(struct m *mp)
{
    model_fail("M %d", mp->id);
}
void runq_submit(struct p *pp, struct g *gp, bool next)
{
    model_fail("P %d, G %lu, %d", pp->id, gp->id, next);
}
struct g *global_turn(struct p *pp)
{
    model_fail("P %d", pp->id);
}
struct g *next_global(struct p *pp, uint32_t max)
{
    model_fail("P %d, %u", pp->id, max);
}
bool prepare_slow(struct m *mp, struct g *gp)
{
    model_fail("M %d, G %lu", mp->id, gp->id);
}
void switch_rare(struct m *mp, struct g *from, struct g *to)
{
    model_fail("M %d, G %lu, G %lu", mp->id, from->id, to->id);
}
int64_t coarse_now(void)
{
    return 0;
}

void wake_slow(struct p *pp, bool only_runnext)
{
    CHECK(!pp && !only_runnext);
}

void deadlock_check_locked(uint32_t mine)
{
    CHECK(mine == 1);
}

/* Weak, so that a model may bring the real ones. No goroutine has a timer or a context, no channel
 * has a timer. */
#define STUB __attribute__((weak))
STUB bool timer_set(struct timer *t, int64_t when, int64_t period)
{
    model_fail("timer %p, %ld, %ld", (void *)t, (long)when, (long)period);
}
STUB bool timer_stop(struct timer *t)
{
    model_fail("timer %p", (void *)t);
}
STUB pirn_chanv *ctx_done(struct pirn_ctx *ctx)
{
    model_fail("context %p", (const void *)ctx);
}
STUB int ctx_err(const struct pirn_ctx *ctx)
{
    model_fail("context %p", (const void *)ctx);
}
STUB void timer_chan_look(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
STUB bool timer_chan_end_locked(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
STUB void timer_chan_free(struct pirn_timer *t)
{
    model_fail("timer %p", (void *)t);
}
STUB bool stack_contains(const void *addr)
{
    (void)addr;
    return false;
}

const char *g_status_name(uint32_t status)
{
    return status == G_RUNNABLE ? "runnable" : "not waiting";
}

#endif
