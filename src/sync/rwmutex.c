/* SPDX-License-Identifier: MIT */
/*
 * Reader-writer mutexes.
 *
 * state_: a word lock for the queue, WRITER (held by one), WAITERS, and the number of readers.
 * waiters_: those who wait, in the order in which they came.
 *
 * Who comes while somebody waits queues too, readers as well: so no writer starves. It is passed from
 * hand to hand: to the first in the queue, and if that is a reader to all readers that follow it.
 * Without waiters each call is one CAS.
 */
#include "sync/waitq.h"

#define WRITER ((uint64_t)4)
#define WAITERS ((uint64_t)8)
#define READER ((uint64_t)256) /* one of them */

struct rw_op { /* of who waits, in its frame */
    pirn_rwmutex *mutex;
    bool writes;
};

static at_u64 *state_of(pirn_rwmutex *m)
{
    return (at_u64 *)(void *)&m->state_;
}

/* For a detector of races: readers come after writers, writers after everybody. */
static void say_entered(pirn_rwmutex *m, bool writes)
{
    tool_acquire(&m->state_);
    if (writes) {
        tool_acquire(&m->waiters_);
    }
}

static void say_leaves(pirn_rwmutex *m, bool writes)
{
    tool_release(writes ? (void *)&m->state_ : (void *)&m->waiters_);
}

static bool can_enter(uint64_t s, bool writes)
{
    return writes ? s < READER && !(s & (WRITER | WAITERS)) : !(s & (WRITER | WAITERS));
}

static bool try_enter(at_u64 *state, bool writes)
{
    uint64_t s = at_load(state, RELAXED);
    while (can_enter(s, writes) && !(s & WORD_LOCKED)) {
        if (at_cas(state, &s, s + (writes ? WRITER : READER), ACQUIRE, RELAXED)) {
            return true;
        }
    }
    return false;
}

/* With the word lock held, and no writer inside: lets the next one in, or the next readers. */
static struct waiter *let_in(pirn_rwmutex *m, uint64_t *s)
{
    struct waiter *first = NULL, **last = &first, *w;
    while ((w = waitq_first(&m->waiters_))) {
        bool writes = ((struct rw_op *)w->object)->writes;
        if (writes && *s >= READER) {
            break;
        }
        waitq_take(&m->waiters_);
        *s += writes ? WRITER : READER;
        *last = w;
        last = &w->next;
        if (writes) {
            break;
        }
    }
    *last = NULL;
    if (!m->waiters_) {
        *s &= ~WAITERS;
    }
    return first;
}

static NOINLINE void take_slow(pirn_rwmutex *m, bool writes, const char *call)
{
    at_u64 *state = state_of(m);
    struct waiter foreign;
    struct rw_op op = {.mutex = m, .writes = writes};
    struct visit v = visit_begin();
    uint64_t s = word_lock(state);
    if (can_enter(s, writes)) {
        word_unlock(state, s + (writes ? WRITER : READER));
        visit_end(v);
        return;
    }
    visit_must_wait(v, state, s, call);
    struct waiter *w = waiter_of(v.mp, &foreign, &op);
    waitq_put(&m->waiters_, w);
    struct unlock_to u = {state, s | WAITERS};
    visit_park(v, w, commit_unlock, &u, writes ? WAIT_RWMUTEX_LOCK : WAIT_RWMUTEX_RLOCK);
    visit_waited_end(v);
}

/* The last one inside leaves, or there are waiters to look at. */
static NOINLINE void let_go_slow(pirn_rwmutex *m, bool writes)
{
    at_u64 *state = state_of(m);
    struct waiter *first = NULL;
    struct visit v = visit_begin();
    uint64_t s = word_lock(state);
    if (writes ? !(s & WRITER) : s < READER) {
        word_unlock(state, s);
        visit_end(v);
        fatal(writes ? "sync: Unlock of unlocked RWMutex" : "sync: RUnlock of unlocked RWMutex");
    }
    s -= writes ? WRITER : READER;
    if (s < READER && (s & WAITERS)) {
        first = let_in(m, &s);
    }
    word_unlock(state, s);
    if (first) {
        waiter_ready_list(first);
    }
    visit_end(v);
}

void rwmutex_forget(struct waiter *w)
{
    pirn_rwmutex *m = ((struct rw_op *)w->object)->mutex;
    struct waiter *first = NULL;
    if (stack_contains(m)) {
        return;
    }
    uint64_t s = word_lock(state_of(m));
    if (waitq_remove(&m->waiters_, w) && !(s & WRITER)) {
        first = let_in(m, &s);
    }
    word_unlock(state_of(m), m->waiters_ ? s : s & ~WAITERS);
    if (first) {
        waiter_ready_list(first);
    }
}

static void let_go(pirn_rwmutex *m, bool writes)
{
    not_forked();
    at_u64 *state = state_of(m);
    uint64_t s = at_load(state, RELAXED);
    say_leaves(m, writes);
    while (!(s & (WAITERS | WORD_LOCKED)) && (writes ? s & WRITER : s >= READER)) {
        if (at_cas(state, &s, s - (writes ? WRITER : READER), RELEASE, RELAXED)) {
            return;
        }
    }
    let_go_slow(m, writes);
}

/* Exact: it does not fail because somebody looks at the queue. */
static bool try_for_sure(pirn_rwmutex *m, bool writes)
{
    at_u64 *state = state_of(m);
    stop_point();
    bool can = try_enter(state, writes);
    if (!can) {
        enter();
        uint64_t s = word_lock(state);
        can = can_enter(s, writes);
        word_unlock(state, can ? s + (writes ? WRITER : READER) : s);
        leave();
    }
    if (can) {
        say_entered(m, writes);
    }
    return can;
}

EXPORT void pirn_rwmutex_lock(pirn_rwmutex *m)
{
    stop_point();
    if (!try_enter(state_of(m), true)) {
        take_slow(m, true, "pirn_rwmutex_lock");
    }
    say_entered(m, true);
}

EXPORT bool pirn_rwmutex_try_lock(pirn_rwmutex *m)
{
    return try_for_sure(m, true);
}

EXPORT void pirn_rwmutex_unlock(pirn_rwmutex *m)
{
    let_go(m, true);
}

EXPORT void pirn_rwmutex_rlock(pirn_rwmutex *m)
{
    stop_point();
    if (!try_enter(state_of(m), false)) {
        take_slow(m, false, "pirn_rwmutex_rlock");
    }
    say_entered(m, false);
}

EXPORT bool pirn_rwmutex_try_rlock(pirn_rwmutex *m)
{
    return try_for_sure(m, false);
}

EXPORT void pirn_rwmutex_runlock(pirn_rwmutex *m)
{
    let_go(m, false);
}
