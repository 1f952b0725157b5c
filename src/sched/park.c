/* SPDX-License-Identifier: MIT */
/* Making goroutines runnable again; park.h has the design. */
#include "sched/park.h"

static COLD _Noreturn void bad_ready(const struct g *gp)
{
    throw("park: ready of goroutine %lu, which is %s", gp->id,
          g_status_name(at_load(&gp->status, RELAXED)));
}

ALWAYS_INLINE void set_runnable(struct g *gp)
{
    if (unlikely(at_load(&gp->status, ACQUIRE) != G_WAITING)) {
        bad_ready(gp);
    }
    tool_ready(&gp->tool);
    at_store(&gp->status, G_RUNNABLE, RELAXED);
}

void make_runnable(struct g *gp)
{
    set_runnable(gp);
}

void commit_park(struct m *mp, struct g *gp)
{
    commit_fn *commit = mp->park_commit;
    /* RELEASE: an embedder's ready() may come from a thread that shares no lock with us. */
    at_store(&gp->status, G_WAITING, RELEASE);
    if (commit && !commit(gp, mp->park_arg)) {
        make_runnable(gp);
        runq_submit(mp->p, gp, true);
    }
}

static NOINLINE void ready_foreign(struct g *gp)
{
    lock(&sched.lock);
    globq_put_locked(&sched.globq, gp);
    unlock(&sched.lock);
    wake_for(NULL);
}

/* From any thread; a foreign one is inside foreign_enter(). The goroutine runs next on this P. */
ALWAYS_INLINE void ready_here(struct g *gp)
{
    struct m *mp = getm();
    set_runnable(gp);
    if (likely(mp && mp->p)) {
        runq_submit(mp->p, gp, true);
    } else {
        ready_foreign(gp);
    }
}

void ready(struct g *gp)
{
    ready_here(gp);
}

void visit_cant_wait(const char *call)
{
    foreign_late_end();
    misuse("%s would block, and no runtime runs", call);
}

/* --- wait records ------------------------------------------------------------------------------ */

void waiter_ready(struct waiter *w)
{
    struct g *gp = w->g;
    if (likely(gp)) {
        ready_here(gp);
    } else {
        foreign_ready(w);
    }
}

#define WAKE_AFTER 64 /* of a long list: others begin while the rest is made ready */

/* The queue of the P takes what fits, in order; the rest goes to the global queue in one go. */
void waiter_ready_list(struct waiter *first)
{
    if (likely(!first->next)) {
        waiter_ready(first);
        return;
    }
    struct m *mp = getm();
    struct p *pp = mp && !sched.move ? mp->p : NULL;
    uint32_t room = pp ? runq_room_owner(&pp->runq) : 0, queued = 0;
    struct glist rest = {0};
    for (struct waiter *w = first, *next; w; w = next) {
        next = w->next;
        w->next = NULL; /* in no queue, if the runtime ends now */
        struct g *gp = w->g;
        if (!gp) {
            foreign_ready(w);
            continue;
        }
        make_runnable(gp);
        if (room) {
            runq_put_owner(&pp->runq, gp);
            room--;
            if (unlikely(++queued == WAKE_AFTER)) {
                wake_for(pp);
            }
        } else {
            glist_put(&rest, gp);
        }
    }
    if (rest.n) {
        lock(&sched.lock);
        globq_put_list_locked(&sched.globq, &rest);
        unlock(&sched.lock);
    }
    wake_for(pp);
}
