/* SPDX-License-Identifier: MIT */
/*
 * Threads that pirn did not make.
 *
 * They have no P: what they submit goes to the global queue, and when they wait they sleep on the
 * note of their wait record, on their own stack. A short call is bracketed by foreign_enter() and
 * foreign_leave(), so that the runtime is not taken apart under it: [F1] the call counts itself,
 * then looks whether the runtime runs; the stop says that it does not, then waits until the count
 * is zero. Both orders are sequentially consistent.
 */
#include "sched/sched.h"

bool foreign_enter(void)
{
    for (;;) {
        /* Looked at before it counts itself: many that wait and count would keep the count above
         * zero, and the stop would wait for them. */
        uint32_t life = at_load(&sched.life, RELAXED);
        if (likely(life == LIFE_RUNNING)) {
            at_add(&sched.nforeign, 1, SEQ_CST); /* [F1] */
            life = at_load(&sched.life, SEQ_CST);
            if (likely(life == LIFE_RUNNING)) {
                return true;
            }
            at_add(&sched.nforeign, (uint32_t)-1, RELAXED); /* it has touched nothing */
        }
        if (life != LIFE_DRAINING) {
            return false;
        }
        thread_yield(); /* a stop that may yet be refused */
    }
}

void foreign_leave(void)
{
    at_add(&sched.nforeign, (uint32_t)-1, RELEASE);
}

/*
 * A call that can't be refused, such as a done, when there is no runtime, or one that comes to its
 * end. It may find goroutines in an object's list that the stop is about to drop; and when it
 * returns, its caller may free the object. So such calls and the stop's own look at the objects come
 * one after the other.
 */
static struct lock late_lock = LOCK_INIT(RANK_LATE);

void foreign_late_begin(void)
{
    lock(&late_lock);
}

void foreign_late_end(void)
{
    unlock(&late_lock);
}

/* By the stop: on return no foreign call is under way, and none begins until life changes again. */
void foreign_drain(void)
{
    lock(&sched.lock); /* else the detector of deadlocks might count threads that end now */
    at_store(&sched.life, LIFE_DRAINING, SEQ_CST); /* [F1] */
    unlock(&sched.lock);
    while (at_load(&sched.nforeign, SEQ_CST)) { /* [F1] */
        thread_yield();
    }
}

static bool sleep_until(struct waiter *w, int64_t deadline)
{
    if (deadline == PIRN_NEVER) {
        visit_wait(&w->note);
    }
    bool woken = note_wait_until(&w->note, deadline);
    if (w->timed) {
        /* A mutant without RELEASE survives: what is freed after it is not touched by this thread. */
        at_add(&sched.nforeign_timed, (uint32_t)-1, RELEASE);
    }
    if (woken) {
        tool_acquire(w);
    }
    return woken;
}

/*
 * Sleeps until foreign_ready(). The commit is called first: nothing of this thread's needs to be left
 * behind, as with a goroutine. Without a runtime only those come here that have waited before, and
 * must wait again: another foreign thread will wake them.
 */
bool foreign_park(struct waiter *w, bool entered, commit_fn *commit, void *arg, int64_t deadline)
{
    w->timed = deadline != PIRN_NEVER;
    at_add(w->timed ? &sched.nforeign_timed : &sched.nforeign_parked, 1, RELAXED);
    if (!commit(NULL, arg)) {
        foreign_ready(w); /* no need to wait */
    }
    if (entered) {
        lock(&sched.lock);
        deadlock_check_locked(1); /* perhaps this was the last thread that could wake somebody */
        unlock(&sched.lock);
        foreign_leave();
    } else {
        foreign_late_end();
    }
    return sleep_until(w, deadline);
}

/* After a time-out, if somebody has chosen this one all the same. */
void foreign_wait_for_ready(struct waiter *w)
{
    note_wait(&w->note);
    tool_acquire(w);
}

/* The waker counts the thread as awake, before it is: else a deadlock might be seen in between. */
void foreign_ready(struct waiter *w)
{
    if (!w->timed) {
        at_add(&sched.nforeign_parked, (uint32_t)-1, RELAXED);
    }
    tool_release(w);
    note_post(&w->note);
}
