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
#ifndef PIRN_SCHED_PARK_H
#define PIRN_SCHED_PARK_H

#include "sched/switch.h"

void commit_park(struct m *mp, struct g *gp); /* park.c */

/* Needs a goroutine. Returns when somebody has called ready(). */
ALWAYS_INLINE void park(commit_fn *commit, void *arg, enum wait_reason reason)
{
    struct m *mp = getm();
    struct g *gp = mp->curg;
    gp->reason = (uint8_t)reason;
    gp->run.wait_since = coarse_now();
    mp->park_commit = commit;
    mp->park_arg = arg;
    switch_away(mp, gp, next_runnable(mp), commit_park);
    gp->reason = WAIT_NONE;
}

/* The record of this wait: that of the goroutine, or *foreign, on the stack of another thread. */
static inline struct waiter *waiter_of(struct m *mp, struct waiter *foreign, void *object)
{
    struct waiter *w = mp ? &mp->curg->run.waiter : foreign;
    w->next = NULL;
    w->g = mp ? mp->curg : NULL;
    w->object = object;
    if (!mp) {
        note_clear(&w->note);
    }
    return w;
}

ALWAYS_INLINE void waiter_park(struct waiter *w, commit_fn *commit, void *arg,
                               enum wait_reason reason)
{
    if (likely(w->g)) {
        park(commit, arg, reason);
    } else {
        foreign_park(&w->note, commit, arg);
    }
}

/*
 * A call on an object that may be shared with anybody, from anywhere: a goroutine, a foreign thread
 * beside a runtime, or a thread without one. Only the first two may wait.
 */
struct visit {
    struct m *mp; /* NULL: not a goroutine */
    bool entered; /* a foreign thread, inside foreign_enter() */
};

/* Goes on with a call that has waited in between: it may owe others something, and is not stopped. */
static inline struct visit visit_again(struct m *mp)
{
    struct visit v = {.mp = mp};
    if (unlikely(!v.mp) && !(v.entered = foreign_enter())) {
        foreign_late_begin();
    }
    return v;
}

static inline struct visit visit_begin(void)
{
    return visit_again(enter());
}

static inline void visit_end(struct visit v)
{
    if (unlikely(!v.mp)) {
        v.entered ? foreign_leave() : foreign_late_end();
    }
}

/* Whoever may not must free what it has locked, then say so: the program's on_fatal may use it. */
static inline bool visit_may_wait(struct visit v)
{
    return likely(v.mp || v.entered);
}

static inline _Noreturn void visit_would_block(struct visit v, const char *call)
{
    visit_end(v);
    misuse("%s would block, and no runtime runs", call);
}

#endif
