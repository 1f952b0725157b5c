/* SPDX-License-Identifier: MIT */
/*
 * Wait groups.
 *
 * state_: the counter in the high half; in the low half a word lock (os/lock.c) and WAITERS.
 * waiters_: the last of a ring of wait records (its next is the first), under the word lock.
 *
 * An add that neither finds the lock held nor ends a wait is one CAS. The done that ends it takes
 * the lock, takes the list, and frees the lock with one store of zero: from then on the object may
 * be gone, for a pirn_wg_wait that sees zero returns at once. What is left to do is in the wait
 * records, whose owners stay until they are made ready.
 *
 * Memory order: the CAS of a done is RELEASE, the load of zero in wait ACQUIRE [G1]: what a
 * goroutine did before done is seen after wait. Waiters that slept get the same from ready().
 *
 * Differs from Go, whose counter reaches zero in one step and is reset in another: between the two
 * a second Wait can return and free the object under the reset.
 */
#include "sync/waitq.h"

#define ONE ((uint64_t)1 << 32)
#define WAITERS ((uint64_t)4)

_Static_assert(sizeof(at_u64) == sizeof(uint64_t), "an atomic word is a word");

static at_u64 *state_of(pirn_wg *wg)
{
    return (at_u64 *)(void *)&wg->state_;
}

static int32_t count_of(uint64_t state)
{
    return (int32_t)(state >> 32);
}

/* The counter after adding n; negative where Go panics. */
static inline int32_t add_to(uint64_t state, int n)
{
    int32_t sum;
    return unlikely(__builtin_add_overflow(count_of(state), n, &sum)) ? -1 : sum;
}

/* Such a sum; nothing is locked. A goroutine that has ended is still in the runtime: nobody can recover it. */
static NOINLINE _Noreturn void bad_sum(struct visit v, int n)
{
    if (!v.again) {
        visit_end(v);
    }
    misuse(n > 0 ? "sync: WaitGroup counter overflow" : "sync: negative WaitGroup counter");
}

static uint64_t with_count(uint64_t state, int32_t count)
{
    return (state & (ONE - 1)) | (uint64_t)(uint32_t)count << 32;
}

/* Adds under the lock. Returns the waiters that are to be made ready: *wg may be gone then. */
static struct waiter *add_locked(struct visit v, pirn_wg *wg, int n)
{
    at_u64 *state = state_of(wg);
    uint64_t s = word_lock(state);
    int32_t sum = add_to(s, n);
    if (unlikely(sum < 0)) {
        word_unlock(state, s);
        bad_sum(v, n);
    }
    if (sum > 0 || !(s & WAITERS)) {
        word_unlock(state, with_count(s, sum));
        return NULL;
    }
    struct waiter *first = waitq_take_all(&wg->waiters_);
    word_unlock(state, 0); /* from here on *wg may be gone */
    return first;
}

static inline struct waiter *add(struct visit v, pirn_wg *wg, int n)
{
    at_u64 *state = state_of(wg);
    uint64_t s = at_load(state, RELAXED);
    if (n < 0) {
        tool_release(wg);
    }
    for (;;) {
        int32_t sum = add_to(s, n);
        if (unlikely(sum < 0)) {
            bad_sum(v, n);
        }
        if (unlikely((s & WORD_LOCKED) || (sum == 0 && (s & WAITERS)))) {
            return add_locked(v, wg, n);
        }
        if (likely(at_cas(state, &s, with_count(s, sum), RELEASE, RELAXED))) { /* [G1] */
            return NULL;
        }
    }
}

static NOINLINE void add_inside(pirn_wg *wg, int n)
{
    struct visit v = visit_begin();
    struct waiter *first = add(v, wg, n);
    if (first) {
        waiter_ready_list(first);
    }
    visit_end(v);
}

/* One that wakes nobody needs neither the P nor a lock: no need to enter the runtime, unless it is to be
 * left for good, or the call is not allowed here. */
EXPORT void pirn_wg_add(pirn_wg *wg, int n)
{
    at_u64 *state = state_of(wg);
    uint64_t s = at_load(state, RELAXED);
    int32_t sum = add_to(s, n);
    struct m *mp = getm();
    bool may =
        mp ? at_load(&mp->where, RELAXED) == M_USER && !at_load(&mp->attention, RELAXED) : !forked;
    if (unlikely(!may || s & WORD_LOCKED || sum < 0 || (sum == 0 && s & WAITERS))) {
        add_inside(wg, n);
        return;
    }
    if (n < 0) {
        tool_release(wg);
    }
    if (unlikely(!at_cas(state, &s, with_count(s, sum), RELEASE, RELAXED))) { /* [G1] */
        add_inside(wg, n);
    }
}

EXPORT void pirn_wg_done(pirn_wg *wg)
{
    pirn_wg_add(wg, -1);
}

/* For a goroutine at its end: the waiters, which it must make ready. */
struct waiter *wg_done_at_end(pirn_wg *wg)
{
    return add((struct visit){.mp = getm(), .again = true}, wg, -1);
}

/* The runtime has ended: the goroutines among the waiters are gone, foreign threads stay. */
void wg_forget_goroutines(pirn_wg *wg)
{
    at_u64 *state = state_of(wg);
    if (!(at_load(state, RELAXED) & WAITERS)) {
        return; /* done already, for another of its waiters */
    }
    uint64_t s = word_lock(state);
    struct waiter *w = s & WAITERS ? waitq_take_all(&wg->waiters_) : NULL;
    for (struct waiter *next; w; w = next) {
        next = w->next;
        if (!w->g) {
            waitq_put(&wg->waiters_, w);
        }
    }
    word_unlock(state, wg->waiters_ ? s : s & ~WAITERS);
}

EXPORT void pirn_wg_wait(pirn_wg *wg)
{
    at_u64 *state = state_of(wg);
    struct waiter foreign;
    struct visit v = visit_begin();
    if (count_of(at_load(state, ACQUIRE)) == 0) { /* [G1] */
        visit_end(v);
        tool_acquire(wg);
        return;
    }
    uint64_t s = word_lock(state);
    if (count_of(s) == 0) {
        word_unlock(state, s);
        visit_end(v);
        tool_acquire(wg);
        return;
    }
    visit_must_wait(v, state, s, "pirn_wg_wait");
    struct waiter *w = waiter_of(v.mp, &foreign, wg);
    waitq_put(&wg->waiters_, w);
    struct unlock_to u = {state, s | WAITERS};
    visit_park(v, w, commit_unlock, &u, WAIT_WG);
    visit_waited_end(v);
    tool_acquire(wg);
    if (unlikely(count_of(at_load(state, RELAXED)) != 0)) {
        misuse("sync: WaitGroup is reused before previous Wait has returned");
    }
}
