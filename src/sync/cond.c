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
#include "ctx/ctx.h"
#include "sync/select.h"

#define WAITERS ((uint64_t)4)

static at_u64 *state_of(pirn_cond *c)
{
    return (at_u64 *)(void *)&c->state_;
}

/* Of who waits, in its frame. One that can end early is queued by a record of its own: the other is
 * taken by whoever ends the wait, and that may be a timer. */
struct cond_op {
    pirn_cond *cond;
    struct select *select; /* NULL: it can't end early */
    struct waiter early;
};

EXPORT void pirn_cond_wait(pirn_cond *c, pirn_mutex *m)
{
    struct waiter foreign;
    struct cond_op op = {.cond = c};
    struct visit v = visit_begin();
    uint64_t s = word_lock(state_of(c));
    visit_must_wait(v, state_of(c), s, "pirn_cond_wait");
    if (!mutex_unlock_visiting(m)) {
        word_unlock(state_of(c), s);
        visit_end(v);
        mutex_not_locked();
    }
    struct waiter *w = waiter_of(v.mp, &foreign, &op);
    waitq_put(&c->waiters_, w);
    struct unlock_to u = {state_of(c), s | WAITERS};
    visit_park(v, w, commit_unlock, &u, WAIT_COND);
    mutex_lock_again(v, m);
}

/* Takes it off the queue, if it is there. */
static void dequeue(pirn_cond *c, struct waiter *w)
{
    uint64_t s = word_lock(state_of(c));
    waitq_remove(&c->waiters_, w);
    word_unlock(state_of(c), c->waiters_ ? s | WAITERS : s & ~WAITERS);
}

EXPORT int pirn_cond_wait_until(pirn_cond *c, pirn_mutex *m, pirn_ns deadline)
{
    struct visit v = visit_begin();
    struct pirn_ctx *ctx = ctx_of(v.mp);
    pirn_case done = {.kind_ = PIRN_CASE_RECV_, .chan_ = ctx ? ctx_done(ctx) : NULL};
    struct chan_op done_op;
    struct select s = SELECT_INIT(&done, &done_op, 1, deadline);
    struct cond_op op = {.cond = c, .select = &s};
    uint64_t word = word_lock(state_of(c));
    if (select_try(v, &s) >= 0) {
        word_unlock(state_of(c), word);
        visit_end(v);
        return ctx_err(ctx);
    }
    if (deadline <= now_ns() || !visit_can_wait(v)) {
        select_unlock(&s);
        word_unlock(state_of(c), word);
        if (deadline > now_ns()) {
            visit_cant_wait("pirn_cond_wait_until");
        }
        visit_end(v);
        return -ETIMEDOUT;
    }
    if (!mutex_unlock_visiting(m)) {
        select_unlock(&s);
        word_unlock(state_of(c), word);
        visit_end(v);
        mutex_not_locked();
    }
    select_waiter(v, &s)->object = &op;
    op.early.object = &op;
    waitq_put(&c->waiters_, &op.early);
    s.also = (struct unlock_to){state_of(c), word | WAITERS};
    void *winner = select_wait(v, &s, WAIT_COND_UNTIL);
    if (winner != select_also_of(&s)) {
        dequeue(c, &op.early);
    }
    mutex_lock_again(v, m);
    return winner == select_also_of(&s)    ? 0
           : winner == select_timer_of(&s) ? -ETIMEDOUT
                                           : ctx_err(ctx);
}

void cond_forget(struct waiter *w)
{
    struct cond_op *op = w->object;
    if (!stack_contains(op->cond)) {
        dequeue(op->cond, op->select ? &op->early : w);
    }
    if (op->select) {
        w->object = op->select;
        select_forget(w);
    }
}

/* One that something else has woken is passed over. */
static struct waiter *take(pirn_cond *c)
{
    struct waiter *w;
    while ((w = waitq_take(&c->waiters_))) {
        struct cond_op *op = w->object;
        if (!op->select) {
            return w;
        }
        if (select_claim_also(op->select)) {
            return op->select->waiter;
        }
    }
    return NULL;
}

static void wake(pirn_cond *c, bool all)
{
    not_forked();
    struct waiter *first = NULL, **last = &first;
    if (!(at_load(state_of(c), RELAXED) & (WAITERS | WORD_LOCKED))) {
        return;
    }
    struct visit v = visit_begin();
    uint64_t s = word_lock(state_of(c));
    do {
        if ((*last = take(c))) {
            last = &(*last)->next;
        }
    } while (all && c->waiters_);
    word_unlock(state_of(c), c->waiters_ ? s | WAITERS : s & ~WAITERS);
    *last = NULL;
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
