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
    tool_go_on(&gp->tool);
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

/*
 * A call on an object that may be shared with anybody, from anywhere: a goroutine, a foreign thread
 * beside a runtime, or a thread without one. Only the first two may wait.
 */
struct visit {
    struct m *mp; /* NULL: not a goroutine */
    bool entered; /* a foreign thread, inside foreign_enter() */
    bool again;   /* has waited before: may, whatever became of the runtime */
};

static inline struct visit visit_of(struct m *mp, bool again)
{
    struct visit v = {.mp = mp, .again = again};
    if (unlikely(!v.mp) && !(v.entered = foreign_enter())) {
        foreign_late_begin();
    }
    return v;
}

static inline struct visit visit_begin(void)
{
    return visit_of(enter(), false);
}

/* Goes on with a call that has waited in between: it may owe others something, and is not stopped. A
 * goroutine has not left since. */
static inline struct visit visit_again(void)
{
    return visit_of(getm(), true);
}

/* The same for one that has left in between. */
static inline struct visit visit_owing(void)
{
    return visit_of(enter_anyway(), true);
}

static inline void visit_end(struct visit v)
{
    if (likely(v.mp)) {
        leave();
    } else {
        v.entered ? foreign_leave() : foreign_late_end();
    }
}

/* Else, give the locks back, and visit_cant_wait(). */
static inline bool visit_can_wait(struct visit v)
{
    return likely(v.mp || v.entered || v.again);
}
COLD _Noreturn void visit_cant_wait(const char *call); /* park.c */

/* Waits. For a thread that ends the visit; a goroutine is inside until visit_waited_end(). */
ALWAYS_INLINE void visit_park(struct visit v, struct waiter *w, commit_fn *commit, void *arg,
                              enum wait_reason reason)
{
    if (likely(v.mp)) {
        park(commit, arg, reason);
    } else {
        foreign_park(w, v.entered, commit, arg, PIRN_NEVER);
    }
}

static inline void visit_waited_end(struct visit v)
{
    if (likely(v.mp)) {
        leave();
    }
}

#endif
