/* SPDX-License-Identifier: MIT */
/*
 * Condition variables.
 *
 * state_: a word lock, and WAITERS. waiters_: those who wait, in the order in which they came.
 *
 * The wait keeps the word lock while it gives the mutex back and until it is off its stack: a signal
 * that comes in between waits for that moment, and finds it in the queue. Who signals with the mutex
 * held, or after having held it, sees WAITERS of all who wait; so without it there is nothing to do.
 */
#include "sync/waitq.h"

#define WAITERS ((uint64_t)4)

static at_u64 *state_of(pirn_cond *c)
{
    return (at_u64 *)(void *)&c->state_;
}

EXPORT void pirn_cond_wait(pirn_cond *c, pirn_mutex *m)
{
    struct waiter foreign;
    struct visit v = visit_begin();
    if (!visit_may_wait(v)) {
        visit_would_block(v, "pirn_cond_wait");
    }
    uint64_t s = word_lock(state_of(c));
    if (!mutex_unlock_visiting(m)) {
        word_unlock(state_of(c), s);
        visit_end(v);
        mutex_not_locked();
    }
    struct waiter *w = waiter_of(v.mp, &foreign, c);
    waitq_put(&c->waiters_, w);
    struct unlock_to u = {state_of(c), s | WAITERS};
    waiter_park(w, commit_unlock, &u, WAIT_COND);
    pirn_mutex_lock(m);
}

void cond_forget(struct waiter *w)
{
    pirn_cond *c = w->object;
    if (!stack_contains(c)) {
        uint64_t s = word_lock(state_of(c));
        waitq_remove(&c->waiters_, w);
        word_unlock(state_of(c), c->waiters_ ? s : s & ~WAITERS);
    }
}

static void wake(pirn_cond *c, bool all)
{
    if (!(at_load(state_of(c), RELAXED) & (WAITERS | WORD_LOCK_BITS))) {
        return;
    }
    struct visit v = visit_begin();
    uint64_t s = word_lock(state_of(c));
    struct waiter *first = all ? waitq_take_all(&c->waiters_) : waitq_take(&c->waiters_);
    word_unlock(state_of(c), c->waiters_ ? s : s & ~WAITERS);
    if (first) {
        waiter_ready_list(first);
    }
    visit_end(v);
}

EXPORT void pirn_cond_signal(pirn_cond *c)
{
    wake(c, false);
}

EXPORT void pirn_cond_broadcast(pirn_cond *c)
{
    wake(c, true);
}
