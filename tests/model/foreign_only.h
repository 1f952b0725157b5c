/* SPDX-License-Identifier: MIT */
/* The rest of the runtime, for models whose threads are all foreign: no goroutine ever runs. */
#ifndef TESTS_MODEL_FOREIGN_ONLY_H
#define TESTS_MODEL_FOREIGN_ONLY_H

#include "explorer/model.h"

#include "sched/switch.h"

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

const char *g_status_name(uint32_t status)
{
    return status == G_RUNNABLE ? "runnable" : "not waiting";
}

#endif
