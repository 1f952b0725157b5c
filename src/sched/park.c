/* SPDX-License-Identifier: MIT */
/*
 * Waiting: the one primitive under everything that blocks.
 *
 * park() takes the goroutine off its thread; ready() makes it runnable again. What makes it
 * findable (mostly: unlocking the object whose list holds its wait record) is the commit action,
 * carried out after the goroutine has left its stack. If the commit says false there is no need to
 * wait after all, and the goroutine is made runnable at once.
 *
 * A wait record (struct waiter) stands for a goroutine or for a thread that pirn did not make; the
 * latter sleeps on the record's note, so that every blocking operation works from any thread.
 *
 * Invariants
 * 1. Between the commit and ready() the G belongs to whoever holds its record: exactly one ready()
 *    for each park(). A second one is a throw.
 * 2. After ready() or waiter_ready() the record may be gone: its owner may have returned.
 */
#include "sched/sched.h"

static void make_runnable(struct g *gp)
{
    uint32_t was = at_load(&gp->status, ACQUIRE);
    if (unlikely(was != G_WAITING)) {
        throw("park: ready of goroutine %lu, which is %s", gp->id, g_status_name(was));
    }
    at_store(&gp->status, G_RUNNABLE, RELAXED);
}

static void commit_park(struct m *mp, struct g *gp)
{
    commit_fn *commit = mp->park_commit;
    /* RELEASE: an embedder's ready() may come from a thread that shares no lock with us. */
    at_store(&gp->status, G_WAITING, RELEASE);
    if (commit && !commit(gp, mp->park_arg)) {
        make_runnable(gp);
        runq_submit(mp->p, gp, true);
    }
}

/* Needs a goroutine. Returns when somebody has called ready(). */
void park(commit_fn *commit, void *arg, enum wait_reason reason)
{
    struct m *mp = getm();
    struct g *gp = mp->curg;
    gp->reason = (uint8_t)reason;
    gp->run.wait_since = coarse_now();
    mp->park_commit = commit;
    mp->park_arg = arg;
    switch_away(mp, gp, next_runnable(mp), commit_park);
}

/* From any thread. The goroutine runs next on this P. */
void ready(struct g *gp)
{
    struct m *mp = getm();
    make_runnable(gp);
    if (likely(mp && mp->p)) {
        runq_submit(mp->p, gp, true);
        return;
    }
    lock(&sched.lock);
    globq_put_locked(&sched.globq, gp);
    unlock(&sched.lock);
    wake_for(NULL, false);
}

/* --- wait records ------------------------------------------------------------------------------ */

void waiter_init(struct waiter *w)
{
    struct m *mp = getm();
    w->next = NULL;
    w->g = mp ? mp->curg : NULL;
    note_clear(&w->note);
}

void waiter_park(struct waiter *w, commit_fn *commit, void *arg, enum wait_reason reason)
{
    if (likely(w->g)) {
        park(commit, arg, reason);
    } else {
        foreign_park(&w->note, commit, arg);
    }
}

void waiter_ready(struct waiter *w)
{
    struct g *gp = w->g;
    if (likely(gp)) {
        ready(gp);
    } else {
        foreign_ready(&w->note);
    }
}

/* The queue of the P takes what fits, in order; the rest goes to the global queue in one go. */
void waiter_ready_list(struct waiter *first)
{
    if (likely(!first->next)) {
        waiter_ready(first);
        return;
    }
    struct m *mp = getm();
    struct p *pp = mp && !sched.move ? mp->p : NULL;
    uint32_t room = pp ? runq_room_owner(&pp->runq) : 0;
    struct glist rest = {0}, none = {0};
    for (struct waiter *w = first, *next; w; w = next) {
        next = w->next;
        struct g *gp = w->g;
        if (!gp) {
            foreign_ready(&w->note);
            continue;
        }
        __builtin_prefetch(next);
        make_runnable(gp);
        if (room) {
            runq_put_owner(&pp->runq, gp, &none);
            room--;
        } else {
            glist_put(&rest, gp);
        }
    }
    if (rest.n) {
        lock(&sched.lock);
        globq_put_list_locked(&sched.globq, &rest);
        unlock(&sched.lock);
    }
    wake_for(pp, false);
}
