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
 */
#include "sched/sched.h"

#include "sched/stack.h"

/* --- choosing ---------------------------------------------------------------------------------- */

static struct g *get_global(struct p *pp, uint32_t max)
{
    lock(&sched.lock);
    struct g *gp = NULL;
    if (sched.globq.list.n) {
        gp = globq_get_locked(&sched.globq, &pp->runq, at_load(&sched.nprocs, RELAXED), max);
    }
    unlock(&sched.lock);
    return gp;
}

/* Puts gp at the tail of the ring; if that is full, half of the ring goes to the global queue. */
static void ring_put(struct p *pp, struct g *gp)
{
    struct glist overflow = {0};
    if (unlikely(!runq_put_owner(&pp->runq, gp, &overflow))) {
        lock(&sched.lock);
        globq_put_list_locked(&sched.globq, &overflow);
        unlock(&sched.lock);
    }
}

/* The slice is over: runnext, which inherits it, must queue like the others. */
static NOINLINE void end_slice(struct p *pp)
{
    at_store(&pp->slice_over, 0, RELAXED);
    struct g *next = runq_take_next_owner(&pp->runq);
    if (next) {
        ring_put(pp, next);
    }
}

/* From the queues of the P, and its share of the global one. Owner only; NULL if there is none. */
struct g *next_local(struct p *pp)
{
    bool inherits, global_first = at_load(&pp->tick, RELAXED) % GLOBQ_TICK == 0;
    if (unlikely(at_load(&pp->slice_over, RELAXED))) {
        end_slice(pp);
        global_first = true;
    }
    struct g *gp = NULL;
    if (unlikely(global_first) && at_load(&sched.globq.size, RELAXED)) {
        gp = get_global(pp, 1);
    }
    if (!gp) {
        gp = runq_get_owner(&pp->runq, &inherits);
        if (gp && inherits) {
            return gp; /* the same slice goes on: no tick */
        }
    }
    if (!gp && at_load(&sched.globq.size, RELAXED)) {
        gp = get_global(pp, UINT32_MAX);
    }
    if (gp) {
        at_count(&pp->tick, 1);
    }
    return gp;
}

/* For a goroutine that leaves. NULL sends it to g0. */
struct g *next_runnable(struct m *mp)
{
    if (unlikely(at_load(&mp->p->retire, RELAXED) || sched.move)) {
        return NULL;
    }
    return next_local(mp->p);
}

/*
 * Makes gp runnable on this P: in front of the others if next, else behind them.
 * Needs the P; gp must be visible to nobody else.
 */
void runq_submit(struct p *pp, struct g *gp, bool next)
{
    bool only_runnext = false;
    if (unlikely(sched.move)) {
        lock(&sched.lock);
        globq_put_locked(&sched.globq, gp);
        unlock(&sched.lock);
        wake_for(pp, false);
        return;
    }
    if (next) {
        gp = runq_put_next_owner(&pp->runq, gp); /* whom it pushed aside queues */
        only_runnext = !gp && runq_len(&pp->runq) == 0;
    }
    if (gp) {
        ring_put(pp, gp);
    }
    wake_for(pp, only_runnext);
}

/* --- switching --------------------------------------------------------------------------------- */

/* Gives gp a stack if it has none. False: the cache of the P is empty, refill it on g0. */
static bool prepare(struct m *mp, struct g *gp)
{
    if (likely(gp->stack_hi)) {
        return true;
    }
    struct stack_cache *c = &mp->p->stacks[gp->class];
    if (unlikely(c->n == 0)) {
        return false;
    }
    uintptr_t slot = c->slot[--c->n];
    gp->stack_hi = (void *)(slot & ~(uintptr_t)SLOT_UNGUARDED);
    if (unlikely(slot & SLOT_UNGUARDED)) {
        gp->flags |= G_UNGUARDED;
        *(uint64_t *)stack_lo(gp) = STACK_CANARY;
    }
    char *lo = stack_lo(gp);
    tool_stack_begin(&gp->tool, lo, (size_t)((char *)gp->stack_hi - lo));
    gp->sp = arch_first_frame(gp->stack_hi);
    return true;
}

/* One of the two has FP modes of its own; the thread's are kept in the M meanwhile. */
static NOINLINE void switch_fp_modes(struct m *mp, struct g *from, struct g *to)
{
    if (from->flags & G_FP_MODES) {
        from->extra->fp_modes = arch_fp_modes();
    } else {
        mp->fp_modes = arch_fp_modes();
    }
    arch_set_fp_modes(to->flags & G_FP_MODES ? to->extra->fp_modes : mp->fp_modes);
}

/* Returns when somebody switches back to `from`, maybe on another M. */
void switch_to(struct m *mp, struct g *from, struct g *to)
{
    struct p *pp = mp->p;
    if (unlikely((from->flags | to->flags) & (G_UNGUARDED | G_FP_MODES))) {
        if (from->flags & G_UNGUARDED) {
            stack_check(from);
        }
        if ((from->flags | to->flags) & G_FP_MODES) {
            switch_fp_modes(mp, from, to);
        }
    }
    if (to != &mp->g0) {
        at_store(&to->status, G_RUNNING, RELAXED);
        mp->curg = to;
        at_count(&pp->counts.switches, 1);
        at_count(&pp->switch_seq, 1);
    } else {
        mp->curg = NULL;
    }
    tool_leave(at_load(&from->status, RELAXED) == G_IDLE ? NULL : &from->tool, &to->tool);
    arch_switch(&from->sp, to->sp);
    switch_finish();
}

/* The goroutine `from` leaves; `commit` is what must happen to it once it has. next may be NULL. */
void switch_away(struct m *mp, struct g *from, struct g *next, void (*commit)(struct m *, struct g *))
{
    mp->commit = commit;
    mp->commit_g = from;
    if (likely(next && prepare(mp, next))) {
        switch_to(mp, from, next);
    } else {
        mp->nextg = next;
        switch_to(mp, from, &mp->g0);
    }
}

/* The first thing on every far side. Returns the M, which may be another than before. */
struct m *switch_finish(void)
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

/* --- the loop of an M, on g0 ------------------------------------------------------------------- */

/* PIRN_DEBUG=move: no goroutine runs twice in a row on the same thread. */
static bool must_move(struct m *mp, struct g *gp)
{
    if (likely(!sched.move) || !gp->stack_hi) {
        return false;
    }
    bool same = gp->run.last_m == mp;
    gp->run.last_m = mp;
    return same;
}

void m_run(struct m *mp)
{
    struct g *gp;
    while ((gp = find_work(mp))) {
        if (must_move(mp, gp)) {
            m_hand_off(mp, gp);
            continue;
        }
        while (!prepare(mp, gp)) {
            stack_refill_g0(mp->p, gp->class);
        }
        switch_to(mp, &mp->g0, gp);
    }
}

/* --- yielding ---------------------------------------------------------------------------------- */

static void commit_yield(struct m *mp, struct g *gp)
{
    at_store(&gp->status, G_RUNNABLE, RELAXED);
    runq_submit(mp->p, gp, false);
}

EXPORT void pirn_yield(void)
{
    struct m *mp = enter();
    if (unlikely(!mp)) {
        sched_yield();
        return;
    }
    struct g *next = next_runnable(mp);
    if (next || unlikely(at_load(&mp->p->retire, RELAXED) || sched.move)) {
        switch_away(mp, mp->curg, next, commit_yield);
    }
}
