/* SPDX-License-Identifier: MIT */
/* Counters for people and programs: summed over the Ps when asked, so that counting costs nothing. */
#include <errno.h>

#include "sched/sched.h"

static void add(pirn_metrics_v1 *out, const struct p_counts *c)
{
    out->spawned += at_load(&c->spawned, RELAXED);
    out->switches += at_load(&c->switches, RELAXED);
    out->steals += at_load(&c->steals, RELAXED);
    out->stolen += at_load(&c->stolen, RELAXED);
    out->wakes += at_load(&c->wakes, RELAXED);
    out->preempted += at_load(&c->preempted, RELAXED);
}

EXPORT int pirn_metrics_n(pirn_metrics_v1 *out, size_t size)
{
    pirn_metrics_v1 all = {0};
    struct m *mp = enter();
    if (!mp && !foreign_enter()) {
        return -EAGAIN; /* no runtime runs */
    }
    all.goroutines = g_count();
    add(&all, &sched.counts);
    for (uint32_t i = 0; i < at_load(&sched.nallp, ACQUIRE); i++) {
        add(&all, &at_load(&sched.allp[i], RELAXED)->counts);
    }
    all.procs = at_load(&sched.nprocs, RELAXED);
    lock(&sched.lock);
    all.threads = sched.nm;
    all.threads_idle = sched.nmidle;
    unlock(&sched.lock);
    stack_metrics(&all);
    all.retaken = at_load(&sched.retaken, RELAXED);
    all.starved = at_load(&sched.starved, RELAXED);
    mp ? leave() : foreign_leave();
    memset(out, 0, size);
    memcpy(out, &all, min_u64(size, sizeof all));
    return 0;
}
