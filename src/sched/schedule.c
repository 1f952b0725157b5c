/* SPDX-License-Identifier: MIT */
/* The rare side of switching, and the loop of an M; switch.h has the design. */
#include "sched/stack.h"
#include "sched/switch.h"

/* --- choosing ---------------------------------------------------------------------------------- */

static NOINLINE void ring_overflow(struct p *pp, struct g *gp)
{
    struct glist overflow = {0};
    while (!runq_put_full_owner(&pp->runq, gp, &overflow)) {
        if (runq_put_owner(&pp->runq, gp)) {
            return; /* a thief has made room */
        }
    }
    lock(&sched.lock);
    globq_put_list_locked(&sched.globq, &overflow);
    unlock(&sched.lock);
}

/* PIRN_DEBUG=move. */
static NOINLINE void submit_global(struct p *pp, struct g *gp)
{
    lock(&sched.lock);
    globq_put_locked(&sched.globq, gp);
    unlock(&sched.lock);
    wake_for(pp);
}

/* Puts gp at the tail of the ring; if that is full, half of the ring goes to the global queue. */
static inline void ring_put(struct p *pp, struct g *gp)
{
    if (unlikely(!runq_put_owner(&pp->runq, gp))) {
        ring_overflow(pp, gp);
    }
}

static NOINLINE void overflow_and_wake(struct p *pp, struct g *gp)
{
    ring_overflow(pp, gp);
    wake_for(pp);
}

/* The slice is over: runnext, which inherits it, must queue like the others. */
static NOINLINE void end_slice(struct p *pp)
{
    at_store(&pp->slice_over, SLICE_GOES_ON, RELAXED);
    struct g *next = runq_take_next_owner(&pp->runq);
    if (next) {
        ring_put(pp, next);
        wake_for(pp); /* it was in neither place for a moment */
    }
}

NOINLINE struct g *next_global(struct p *pp, uint32_t max)
{
    lock(&sched.lock);
    struct g *gp = NULL;
    if (at_load(&sched.globq.size, RELAXED)) {
        gp = globq_get_locked(&sched.globq, &pp->runq, at_load(&sched.nprocs, RELAXED), max);
    }
    unlock(&sched.lock);
    if (gp) {
        at_count(&pp->tick, 1);
        wake_for_more(pp);
    }
    return gp;
}

static bool timer_is_due(struct p *pp)
{
    int64_t next = (int64_t)at_load(&pp->timers.next, RELAXED);
    return next != PIRN_NEVER && next <= now_ns();
}

/* The global queue's turn has come, now and then; unless it is the ring that waits. */
NOINLINE struct g *global_turn(struct p *pp)
{
    uint32_t over = at_load(&pp->slice_over, RELAXED);
    if (over) {
        end_slice(pp);
    }
    if (timer_is_due(pp)) {
        at_store(&pp->timers_due, 1, RELAXED); /* at the next switch, on g0 */
    }
    bool others = over != SLICE_RING_STARVES && at_load(&sched.globq.size, RELAXED);
    return others ? next_global(pp, 1) : NULL;
}

/* From the queues of the P, and its share of the global one. Owner only; NULL if there is none. */
struct g *next_local(struct p *pp)
{
    return choose(pp);
}

/*
 * Makes gp runnable on this P: in front of the others if next, else behind them.
 * Needs the P; gp must be visible to nobody else.
 */
void runq_submit(struct p *pp, struct g *gp, bool next)
{
    if (unlikely(sched.move)) {
        submit_global(pp, gp);
        return;
    }
    if (next) {
        gp = runq_put_next_owner(&pp->runq, gp); /* whom it pushed aside queues */
        if (likely(!gp)) {
            if (!p_is_alone(pp)) {
                /* [W1]. Without it (a mutant that survives) sysmon finds the work, 10 ms later. */
                at_fence(SEQ_CST);
                wake_if_idle(pp, runq_len(&pp->runq) == 0);
            }
            return;
        }
    }
    if (unlikely(!runq_put_owner(&pp->runq, gp))) {
        overflow_and_wake(pp, gp);
        return;
    }
    wake_for(pp);
}

/* --- switching --------------------------------------------------------------------------------- */

/* Gives gp a stack if it has none. False: only g0 can go on, since the cache of the P is empty, or gp runs
 * on another thread. */
NOINLINE bool prepare_slow(struct m *mp, struct g *gp)
{
    if (gp->stack_hi) { /* bound */
        return gp->run.m == mp && !mp->curg;
    }
    struct stack_cache *c = &mp->p->stacks[gp->class];
    if (unlikely(c->n == 0) || (TOOL_RACE && mp->curg)) { /* g0 is not ordered after anybody */
        return false;
    }
    uintptr_t slot = c->slot[--c->n];
    gp->stack_hi = (void *)(slot & ~(uintptr_t)SLOT_UNGUARDED);
    char *lo = stack_lo(gp);
    tool_stack_begin(&gp->tool, lo, (size_t)((char *)gp->stack_hi - lo));
    if (unlikely(slot & SLOT_UNGUARDED)) {
        gp->flags |= G_UNGUARDED;
        *(uint64_t *)(void *)lo = STACK_CANARY;
    }
    gp->sp = NULL; /* starts at the top */
    return true;
}

/* One of the two has FP modes of its own; the thread's are kept in the M meanwhile. */
static void switch_fp_modes(struct m *mp, struct g *from, struct g *to)
{
    if (from->flags & G_FP_MODES) {
        from->extra->fp_modes = arch_fp_modes();
    } else {
        mp->fp_modes = arch_fp_modes();
    }
    arch_set_fp_modes(to->flags & G_FP_MODES ? to->extra->fp_modes : mp->fp_modes);
}

/* One of the two is not as most are. */
NOINLINE void switch_rare(struct m *mp, struct g *from, struct g *to)
{
    if (from->flags & G_UNGUARDED) {
        stack_check(from);
    }
    if ((from->flags | to->flags) & G_FP_MODES) {
        switch_fp_modes(mp, from, to);
    }
}

/*
 * C++ keeps the exceptions that are caught, and the number of those under way, by thread; they belong to
 * the goroutine. Only one that is left in a catch, or in a destructor while an exception passes, has any.
 */
NOINLINE void switch_cxx(struct m *mp, struct g *from, struct g *to, bool gone)
{
    if (!gone && from != &mp->g0 && (mp->cxx->caught || mp->cxx->uncaught)) {
        g_top(from)->cxx = *mp->cxx;
        from->flags |= G_CXX;
    }
    *mp->cxx = to->flags & G_CXX ? g_top(to)->cxx : (struct cxx_globals){0};
    to->flags &= (uint16_t)~G_CXX;
}

/* --- the loop of an M, on g0 ------------------------------------------------------------------- */

/* PIRN_DEBUG=move: no goroutine runs twice in a row on the same thread. */
static bool must_move(struct m *mp, struct g *gp)
{
    if (likely(!sched.move) || !gp->stack_hi || gp->flags & G_BOUND) {
        return false;
    }
    bool same = gp->run.m == mp;
    gp->run.m = mp;
    if (!same && sched.locks_held_by) {
        dump_locks(gp);
    }
    return same;
}

void m_run(struct m *mp)
{
    struct g *gp;
    while ((gp = find_work(mp))) {
        if (must_move(mp, gp) || (gp->flags & G_BOUND && gp->run.m != mp)) {
            m_hand_off(mp, gp);
            continue;
        }
        while (!prepare(mp, gp)) {
            stack_refill_g0(mp->p, gp->class);
        }
        switch_to(mp, &mp->g0, gp);
        if (unlikely(mp->ends || (mp->visits && !mp->lockedg))) {
            m_end_locked(mp);
            return;
        }
        if (unlikely(mp->lockedg)) {
            m_wait_locked(mp);
        }
    }
}

/* --- yielding ---------------------------------------------------------------------------------- */

static void commit_yield(struct m *mp, struct g *gp)
{
    at_store(&gp->status, G_RUNNABLE, RELAXED);
    runq_submit(mp->p, gp, false);
}

/* Also for whom a timer would bring: else one that only yields keeps it waiting until sysmon comes by. */
EXPORT void pirn_yield(void)
{
    struct m *mp = enter();
    if (unlikely(!mp)) {
        thread_yield();
        return;
    }
    struct g *next = next_runnable(mp);
    if (next
        || unlikely(at_load(&mp->p->retire, RELAXED) || at_load(&mp->p->timers_due, RELAXED)
                    || sched.move || mp->visits || timer_is_due(mp->p))) {
        mp = switch_away(mp, mp->curg, next, commit_yield);
    }
    leave_from(mp);
}
