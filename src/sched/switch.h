/* SPDX-License-Identifier: MIT */
/*
 * What runs next, and the switch to it.
 *
 * A goroutine that parks, yields or ends picks its successor itself and switches straight to it.
 * Only if its P has nothing runnable at hand, or the successor needs a stack that is not in the
 * P's cache, does it switch to g0, the M's own stack, where find_work() may steal and sleep.
 *
 * The commit action. `from` must not become visible to others before its stack has been left. So
 * it is left in m.commit, and the first thing on the far side is switch_finish(), which carries it
 * out: on the same thread, with the same P, for whoever was switched to.
 *
 * Invariants
 * 1. m.commit is set only between the choice to switch and switch_finish().
 * 2. A G is G_RUNNING iff it is the curg of exactly one M.
 *
 * All of this is inline on purpose. The processor predicts returns by the calls it saw; after a
 * switch each return through a frame of ours is one misprediction, about 5 ns. So a blocking call
 * should be one frame above arch_switch. The functions around the switch itself must be inline for
 * ThreadSanitizer too, which counts entries and exits of functions for each goroutine.
 */
#ifndef PIRN_SCHED_SWITCH_H
#define PIRN_SCHED_SWITCH_H

#include "sched/sched.h"

/* schedule.c: what happens rarely */
struct g *global_turn(struct p *pp);
struct g *next_global(struct p *pp, uint32_t max);
bool prepare_slow(struct m *mp, struct g *gp);
void switch_rare(struct m *mp, struct g *from, struct g *to);
void switch_cxx(struct m *mp, struct g *from, struct g *to, bool gone);

/* From the queues of the P, and its share of the global one. Owner only; NULL if there is none. */
ALWAYS_INLINE struct g *choose(struct p *pp)
{
    struct g *gp;
    uint32_t tick = at_load(&pp->tick, RELAXED);
    if (unlikely(tick % GLOBQ_TICK == 0 || at_load(&pp->slice_over, RELAXED))
        && (gp = global_turn(pp))) {
        return gp;
    }
    if ((gp = runq_take_next_owner(&pp->runq))) {
        return gp; /* it inherits the slice: no tick */
    }
    if (likely((gp = runq_get_owner(&pp->runq)))) {
        at_store(&pp->tick, tick + 1, RELAXED);
        return gp;
    }
    return at_load(&sched.globq.size, RELAXED) ? next_global(pp, UINT32_MAX) : NULL;
}

/* For a goroutine that leaves. NULL sends it to g0. */
ALWAYS_INLINE struct g *next_runnable(struct m *mp)
{
    struct p *pp = mp->p;
    if (unlikely(at_load(&pp->retire, RELAXED) || at_load(&pp->timers_due, RELAXED)
                 || sched.move)) {
        return NULL;
    }
    return choose(pp);
}

static inline bool prepare(struct m *mp, struct g *gp)
{
    return likely(gp->stack_hi && !(gp->flags & G_BOUND)) || prepare_slow(mp, gp);
}

/* The first thing on every far side. Returns the M, which may be another than before. */
ALWAYS_INLINE struct m *switch_finish(void)
{
    struct m *mp = getm();
    tool_arrive(mp->curg ? &mp->curg->tool : &mp->g0.tool);
    void (*commit)(struct m *, struct g *) = mp->commit;
    if (likely(commit)) {
        mp->commit = NULL;
        commit(mp, mp->commit_g);
    }
    return mp;
}

/* Everything about a switch but the switch. gone: `from` has ended. */
ALWAYS_INLINE void switch_begin(struct m *mp, struct g *from, struct g *to, bool gone)
{
    if (unlikely((from->flags | to->flags) & (G_UNGUARDED | G_FP_MODES))) {
        switch_rare(mp, from, to);
    }
    if (unlikely(mp->cxx)
        && unlikely(mp->cxx->caught || (uint32_t)mp->cxx->uncaught || to->flags & G_CXX)) {
        switch_cxx(mp, from, to, gone);
    }
    if (to != &mp->g0) {
        at_store(&to->status, G_RUNNING, RELAXED);
        mp->curg = to;
        at_count(&mp->p->counts.switches, 1);
    } else {
        mp->curg = NULL;
    }
    tool_leave(gone ? NULL : &from->tool, &to->tool);
}

/* Returns when somebody switches back to `from`, maybe on another M, which it returns. */
ALWAYS_INLINE struct m *switch_to(struct m *mp, struct g *from, struct g *to)
{
    switch_begin(mp, from, to, false);
    if (likely(to->sp)) {
        arch_switch(&from->sp, to->sp);
    } else {
        arch_start(&from->sp, stack_start(to));
    }
    return switch_finish();
}

/* On the stack of its thread's signal handlers. The next handler there would overwrite who waits on it. */
ALWAYS_INLINE bool in_handler(const struct m *mp)
{
    return (uintptr_t)__builtin_frame_address(0) - (uintptr_t)mp->altstack < ALTSTACK;
}

/* The goroutine `from` leaves; `commit` is what must happen to it once it has. next may be NULL. */
ALWAYS_INLINE struct m *switch_away(struct m *mp, struct g *from, struct g *next,
                                    void (*commit)(struct m *, struct g *))
{
    if (unlikely(in_handler(mp))) {
        handler_may_not_wait();
    }
    mp->commit = commit;
    mp->commit_g = from;
    if (likely(next && !(from->flags & G_BOUND) && prepare(mp, next))) {
        return switch_to(mp, from, next);
    }
    mp->nextg = next;
    if (unlikely(from->flags & G_BOUND)) {
        bound_leaves(mp, from);
    }
    return switch_to(mp, from, &mp->g0);
}

#endif
