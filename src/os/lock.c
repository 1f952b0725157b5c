/* SPDX-License-Identifier: MIT */
/*
 * The runtime's mutex: three states in a futex word, free, held, held with
 * sleepers. A short spin first, since the sections are short: a few looks, far
 * apart (spin_wait); more are worse than sleep on few CPUs, where the holder
 * may be waiting for ours.
 *
 * Invariants
 * 1. The word is 0 iff nobody holds the lock.
 * 2. A thread sleeps only while it reads SLEEPERS, and the unlock that takes
 *    SLEEPERS away wakes one; the woken thread sets it again, since it can't
 *    know whether it was the last.
 *
 * Orders: taking is ACQUIRE, releasing is RELEASE, on the same word.
 */
#include "base/fatal.h"
#include "base/util.h"
#include "os/os.h"

#define SPINS (PIRN_SMALL ? 1 : 8) /* looks before it sleeps */

enum { FREE, HELD, SLEEPERS };

static NOINLINE void lock_slow(struct lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t free = FREE;
        spin_wait();
        if (at_load(&l->state, RELAXED) == FREE
            && at_cas(&l->state, &free, HELD, ACQUIRE, RELAXED)) {
            return;
        }
    }
    while (at_xchg(&l->state, SLEEPERS, ACQUIRE) != FREE) {
        futex_wait(&l->state, SLEEPERS, INT64_MAX);
    }
}

void lock(struct lock *l)
{
    lockrank_acquire(l->rank);
    uint32_t free = FREE;
    if (unlikely(!at_cas(&l->state, &free, HELD, ACQUIRE, RELAXED))) {
        lock_slow(l);
    }
}

void unlock(struct lock *l)
{
    lockrank_release(l->rank);
    if (unlikely(at_xchg(&l->state, FREE, RELEASE) == SLEEPERS)) {
        futex_wake(&l->state, 1);
    }
}

void lock_must_hold(const struct lock *l)
{
#if PIRN_DEBUG_CHECKS
    if (!lockrank_holds(l->rank)) {
        throw("lock: of rank %d is not held", l->rank);
    }
#else
    (void)l;
#endif
}

/*
 * The word lock. Nobody sleeps mostly, so the burden is the sleeper's: it counts itself in the table,
 * [O1] then looks at the word again, while unlock stores the word and then looks at the table. Its fence
 * is the heavy one, and that of unlock costs nothing. It sleeps on the low half of the word, which does
 * not change while the lock is held; who takes the lock in between has an unlock to come, and each that
 * finds the table not zero wakes one.
 */
at_u32 word_sleepers[WORD_BEDS];

static at_u32 *low_half(at_u64 *word)
{
    return (at_u32 *)(void *)word; /* both machines are little-endian */
}

static bool take_word(at_u64 *word, uint64_t *w)
{
    return !(*w & WORD_LOCKED) && at_cas(word, w, *w | WORD_LOCKED, ACQUIRE, RELAXED);
}

static NOINLINE uint64_t word_lock_sleep(at_u64 *word)
{
    at_u32 *bed = word_bed(word);
    at_add(bed, 1, RELAXED);
    fence_heavy(); /* [O1] */
    for (;;) {
        uint64_t w = at_load(word, RELAXED);
        if (take_word(word, &w)) {
            at_add(bed, (uint32_t)-1, RELAXED);
            return w;
        }
        if (w & WORD_LOCKED) {
            futex_wait(low_half(word), (uint32_t)w, INT64_MAX);
        }
    }
}

NOINLINE uint64_t word_lock_slow(at_u64 *word)
{
    for (int looks = 0; looks < SPINS;) {
        uint64_t w = at_load(word, RELAXED);
        if (take_word(word, &w)) {
            return w;
        }
        if (w & WORD_LOCKED) {
            looks++;
            spin_wait();
        }
    }
    return word_lock_sleep(word);
}

/* The word may be gone already: the address is only a key. */
void word_wake(at_u64 *word)
{
    futex_wake(low_half(word), 1);
}

#if PIRN_FLAVOUR_MODEL
void word_unlock(at_u64 *word, uint64_t value)
{
    word_unlock_now(word, value);
}
#endif
