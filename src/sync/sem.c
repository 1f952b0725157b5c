/* SPDX-License-Identifier: MIT */
/*
 * Weighted semaphores, and barriers.
 *
 * state_: a word lock, and WAITERS. n_: permits that are left, under the lock; waiters_: those who
 * wait, who are served in the order in which they came: a small request does not overtake a large one.
 */
#include "sync/waitq.h"

#define WAITERS ((uint64_t)4)

static at_u64 *word_of(uint64_t *state)
{
    return (at_u64 *)(void *)state;
}

/* --- semaphores -------------------------------------------------------------------------------- */

struct sem_op { /* of who waits, in its frame */
    pirn_sem *sem;
    int64_t n;
};

static void check_number(int64_t n)
{
    if (unlikely(n < 0)) {
        misuse("semaphore: negative number of permits");
    }
}

EXPORT void pirn_sem_init(pirn_sem *s, int64_t n)
{
    not_forked();
    check_number(n);
    *s = (pirn_sem){.n_ = n};
}

static bool take(pirn_sem *s, int64_t n)
{
    if (s->waiters_ || s->n_ < n) {
        return false;
    }
    s->n_ -= n;
    return true;
}

EXPORT void pirn_sem_acquire(pirn_sem *s, int64_t n)
{
    not_forked();
    struct waiter foreign;
    struct sem_op op = {s, n};
    check_number(n);
    struct visit v = visit_begin();
    uint64_t word = word_lock(word_of(&s->state_));
    if (take(s, n)) {
        word_unlock(word_of(&s->state_), word);
        visit_end(v);
        tool_acquire(s);
        return;
    }
    visit_must_wait(v, word_of(&s->state_), word, "pirn_sem_acquire");
    struct waiter *w = waiter_of(v.mp, &foreign, &op);
    waitq_put(&s->waiters_, w);
    struct unlock_to u = {word_of(&s->state_), word | WAITERS};
    visit_park(v, w, commit_unlock, &u, WAIT_SEM);
    visit_waited_end(v);
    tool_acquire(s);
}

EXPORT bool pirn_sem_try_acquire(pirn_sem *s, int64_t n)
{
    not_forked();
    check_number(n);
    enter();
    uint64_t word = word_lock(word_of(&s->state_));
    bool taken = take(s, n);
    word_unlock(word_of(&s->state_), word);
    leave();
    if (taken) {
        tool_acquire(s);
    }
    return taken;
}

/* Under the lock: those at the head of the queue for whom there is enough. */
static struct waiter *serve(pirn_sem *s)
{
    struct waiter *first = NULL, **last = &first, *w;
    while ((w = waitq_first(&s->waiters_)) && ((struct sem_op *)w->object)->n <= s->n_) {
        s->n_ -= ((struct sem_op *)w->object)->n;
        *last = waitq_take(&s->waiters_);
        last = &w->next;
    }
    *last = NULL;
    return first;
}

void sem_forget(struct waiter *w)
{
    pirn_sem *s = ((struct sem_op *)w->object)->sem;
    if (stack_contains(s)) {
        return;
    }
    uint64_t word = word_lock(word_of(&s->state_));
    struct waiter *first = waitq_remove(&s->waiters_, w) ? serve(s) : NULL;
    word_unlock(word_of(&s->state_), s->waiters_ ? word : word & ~WAITERS);
    if (first) {
        waiter_ready_list(first);
    }
}

EXPORT void pirn_sem_release(pirn_sem *s, int64_t n)
{
    not_forked();
    int64_t sum;
    check_number(n);
    struct visit v = visit_begin();
    tool_release(s);
    uint64_t word = word_lock(word_of(&s->state_));
    if (__builtin_add_overflow(s->n_, n, &sum)) {
        word_unlock(word_of(&s->state_), word);
        visit_end(v);
        misuse("semaphore: released more than can be held");
    }
    s->n_ = sum;
    struct waiter *first = serve(s);
    word_unlock(word_of(&s->state_), s->waiters_ ? word : word & ~WAITERS);
    if (first) {
        waiter_ready_list(first);
    }
    visit_end(v);
}

/* --- barriers ---------------------------------------------------------------------------------- */

EXPORT void pirn_barrier_init(pirn_barrier *b, int n)
{
    not_forked();
    if (n < 1) {
        misuse("barrier: for fewer than one");
    }
    *b = (pirn_barrier){.n_ = n};
}

EXPORT bool pirn_barrier_wait(pirn_barrier *b)
{
    struct waiter foreign;
    struct visit v = visit_begin();
    tool_release(b);
    uint64_t word = word_lock(word_of(&b->state_));
    if (b->arrived_ + 1 >= b->n_) {
        struct waiter *first = waitq_take_all(&b->waiters_);
        b->arrived_ = 0;
        tool_acquire(b);
        word_unlock(word_of(&b->state_), 0);
        if (first) {
            waiter_ready_list(first);
        }
        visit_end(v);
        return true;
    }
    visit_must_wait(v, word_of(&b->state_), word, "pirn_barrier_wait");
    b->arrived_++;
    struct waiter *w = waiter_of(v.mp, &foreign, b);
    waitq_put(&b->waiters_, w);
    struct unlock_to u = {word_of(&b->state_), word};
    visit_park(v, w, commit_unlock, &u, WAIT_BARRIER);
    visit_waited_end(v);
    tool_acquire(b);
    return false;
}

void barrier_forget(struct waiter *w)
{
    pirn_barrier *b = w->object;
    if (!stack_contains(b)) {
        uint64_t word = word_lock(word_of(&b->state_));
        b->arrived_ -= waitq_remove(&b->waiters_, w);
        word_unlock(word_of(&b->state_), word);
    }
}
