/* SPDX-License-Identifier: MIT */
/*
 * Mutexes.
 *
 * state_: a word lock (os/lock.c) for the queue, and flags. waiters_: the queue (waitq.h).
 *   HELD      somebody has it
 *   WAITERS   the queue is not empty
 *   WOKEN     one was taken off the queue to try again: nobody else is woken meanwhile
 *   STARVING  it is passed from hand to hand
 *   and above them the id of the goroutine that has it, for reports (debug/cycles.c); 0: none, or a
 *   thread of the program's. It costs nothing: it is stored with HELD.
 *
 * Free and uncontended, lock and unlock are one CAS each.
 *
 * Go's two modes. Normally who is woken has to compete with those who come along, and these mostly
 * win, since they run already: that is what makes a mutex fast under contention. One that loses goes
 * back to the front of the queue; if it has waited for more than 1 ms it turns the mutex to
 * starvation: then unlock passes it to the first in the queue, and newcomers queue. That ends with
 * one that has waited for less, or was the last.
 *
 * After the step that lets another one have it unlock does not touch the mutex any more [R9].
 */
#include "sync/waitq.h"

#define HELD ((uint64_t)4)
#define WAITERS ((uint64_t)8)
#define WOKEN ((uint64_t)16)
#define STARVING ((uint64_t)32)
#define FLAGS ((uint64_t)255) /* the rest is the owner */
#define OWNER_SHIFT 8

#define STARVES_AFTER (1 * PIRN_MS)
#define SPINS 4 /* looks before it queues, if another P could have it */

struct lock_op { /* of who waits, in its frame */
    pirn_mutex *mutex;
    int64_t since;
    bool handed;
};

static at_u64 *state_of(pirn_mutex *m)
{
    return (at_u64 *)(void *)&m->state_;
}

/* HELD, by the one who runs here. mp is NULL on a thread of the program's. */
static inline uint64_t held_by(const struct m *mp)
{
    return HELD | (likely(mp) ? mp->curg->id << OWNER_SHIFT : 0);
}

/* Also if there are waiters. */
static bool take_if_free(at_u64 *state, uint64_t held)
{
    uint64_t s = at_load(state, RELAXED);
    return !(s & (HELD | STARVING | WORD_LOCKED)) && at_cas(state, &s, s | held, ACQUIRE, RELAXED);
}

static bool spin_for(at_u64 *state, uint64_t held)
{
    for (int i = 0; i < SPINS && at_load(&sched.nprocs, RELAXED) > 1; i++) {
        spin_wait();
        if (at_load(state, RELAXED) & STARVING) {
            return false;
        }
        if (take_if_free(state, held)) {
            return true;
        }
    }
    return false;
}

/* again: the caller has waited for something else before. */
static NOINLINE void lock_slow(pirn_mutex *m, bool again)
{
    at_u64 *state = state_of(m);
    struct lock_op op = {.mutex = m};
    bool woken = false;
    for (;;) {
        struct waiter foreign;
        struct visit v = again ? visit_again() : visit_begin();
        uint64_t s = word_lock(state);
        if (woken) {
            s &= ~WOKEN;
        }
        if (!(s & (HELD | STARVING))) {
            word_unlock(state, s | held_by(v.mp));
            visit_end(v);
            return;
        }
        visit_must_wait(v, state, s, "pirn_mutex_lock");
        struct waiter *w = waiter_of(v.mp, &foreign, &op);
        if (woken) {
            s |= now_ns() - op.since > STARVES_AFTER ? STARVING : 0;
            waitq_put_first(&m->waiters_, w);
        } else {
            op.since = now_ns();
            waitq_put(&m->waiters_, w);
        }
        struct unlock_to u = {state, s | WAITERS};
        visit_park(v, w, commit_unlock, &u, WAIT_MUTEX);
        if (op.handed) {
            visit_waited_end(v);
            return;
        }
        again = woken = true;
    }
}

EXPORT void pirn_mutex_lock(pirn_mutex *m)
{
    uint64_t none = 0;
    at_u64 *state = state_of(m);
    uint64_t held = held_by(stop_point());
    if (unlikely(!at_cas(state, &none, held, ACQUIRE, RELAXED)) && !take_if_free(state, held)
        && !spin_for(state, held)) {
        lock_slow(m, false);
    }
    tool_acquire(m);
}

void mutex_lock_again(struct visit v, pirn_mutex *m)
{
    uint64_t none = 0;
    at_u64 *state = state_of(m);
    uint64_t held = held_by(getm()); /* v.mp is where it was before */
    if (at_cas(state, &none, held, ACQUIRE, RELAXED) || take_if_free(state, held)
        || spin_for(state, held)) {
        visit_waited_end(v);
    } else {
        lock_slow(m, true);
    }
    tool_acquire(m);
}

EXPORT bool pirn_mutex_try_lock(pirn_mutex *m)
{
    at_u64 *state = state_of(m);
    uint64_t held = held_by(stop_point());
    for (;;) {
        uint64_t s = at_load(state, RELAXED);
        if (s & (HELD | STARVING)) {
            return false;
        }
        if (take_if_free(state, held)) {
            tool_acquire(m);
            return true;
        }
        at_pause();
    }
}

/* With the word lock held: who is to be made ready, and the state to leave. */
static struct waiter *next_owner(pirn_mutex *m, uint64_t *s)
{
    struct waiter *w;
    if (*s & STARVING) {
        w = waitq_take(&m->waiters_);
        struct lock_op *op = w->object;
        op->handed = true;
        *s = (*s & FLAGS) | (w->g ? w->g->id << OWNER_SHIFT : 0);
        if (!m->waiters_ || now_ns() - op->since < STARVES_AFTER) {
            *s &= ~STARVING;
        }
    } else {
        *s &= FLAGS & ~HELD;
        if (*s & WOKEN || !(w = waitq_take(&m->waiters_))) {
            return NULL;
        }
        *s |= WOKEN;
    }
    if (!m->waiters_) {
        *s &= ~WAITERS;
    }
    return w;
}

void mutex_not_locked(void)
{
    fatal("sync: unlock of unlocked mutex");
}

/* One of the waiters has been woken already, and tries: there is nothing to do in the queue. */
static bool unlock_quietly(at_u64 *state)
{
    uint64_t s = at_load(state, RELAXED);
    while ((s & (HELD | WOKEN | STARVING | WORD_LOCKED)) == (HELD | WOKEN)) {
        if (at_cas(state, &s, s & FLAGS & ~HELD, RELEASE, RELAXED)) {
            return true;
        }
    }
    return false;
}

static bool unlock_contended(pirn_mutex *m)
{
    at_u64 *state = state_of(m);
    uint64_t s = word_lock(state);
    if (!(s & HELD)) {
        word_unlock(state, s);
        return false;
    }
    struct waiter *w = next_owner(m, &s);
    word_unlock(state, s);
    if (w) {
        waiter_ready(w);
    }
    return true;
}

static bool unlock_fast(pirn_mutex *m)
{
    uint64_t s = at_load(state_of(m), RELAXED);
    tool_release(m);
    return likely((s & FLAGS) == HELD) && at_cas(state_of(m), &s, 0, RELEASE, RELAXED);
}

bool mutex_unlock_visiting(pirn_mutex *m)
{
    return unlock_fast(m) || unlock_quietly(state_of(m)) || unlock_contended(m);
}

static NOINLINE void unlock_slow(pirn_mutex *m)
{
    if (unlock_quietly(state_of(m))) {
        return;
    }
    struct visit v = visit_begin();
    bool was_locked = unlock_contended(m);
    visit_end(v);
    if (!was_locked) {
        mutex_not_locked();
    }
}

/* For reports. */
uint64_t mutex_owner(uint64_t state)
{
    return state & HELD ? state >> OWNER_SHIFT : 0;
}

void mutex_forget(struct waiter *w)
{
    struct lock_op *op = w->object;
    pirn_mutex *m = op->mutex;
    struct waiter *next = NULL;
    if (stack_contains(m)) {
        return;
    }
    uint64_t s = word_lock(state_of(m));
    if (waitq_remove(&m->waiters_, w)) {
        s &= m->waiters_ ? ~(uint64_t)0 : ~(WAITERS | STARVING);
    } else if (!op->handed) {
        s &= ~WOKEN;
        if (!(s & HELD)) {
            next = next_owner(m, &s);
        }
    }
    word_unlock(state_of(m), s);
    if (next) {
        waiter_ready(next);
    }
}

EXPORT void pirn_mutex_unlock(pirn_mutex *m)
{
    not_forked();
    if (unlikely(!unlock_fast(m))) {
        unlock_slow(m);
    }
}
