/* SPDX-License-Identifier: MIT */
/*
 * The runtime's mutex: three states in a futex word, free, held, held with
 * sleepers. A short spin first, since the sections are short; a longer one is
 * worse than sleep on few CPUs, where the holder may be waiting for ours.
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

#define SPINS (PIRN_SMALL ? 1 : 60)

enum { FREE, HELD, SLEEPERS };

static NOINLINE void lock_slow(struct lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t free = FREE;
        if (at_load(&l->state, RELAXED) == FREE
            && at_cas(&l->state, &free, HELD, ACQUIRE, RELAXED)) {
            return;
        }
        at_pause();
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
 * The word lock: bit 0 held, bit 1 somebody sleeps. A sleeper waits on the low
 * half of the word, whose other bits don't change while the lock is held, so
 * the value it compares stays the same until the release.
 */
static at_u32 *low_half(at_u64 *word)
{
    return (at_u32 *)(void *)word; /* both machines are little-endian */
}

NOINLINE uint64_t word_lock_slow(at_u64 *word)
{
    uint64_t take = WORD_LOCKED;
    for (int spins = 0;;) {
        uint64_t w = at_load(word, RELAXED);
        if (!(w & WORD_LOCKED)) {
            if (at_cas(word, &w, w | take, ACQUIRE, RELAXED)) {
                return w & ~(uint64_t)WORD_LOCK_BITS;
            }
        } else if (spins < SPINS) {
            spins++;
            at_pause();
        } else if ((w & WORD_SLEEPERS) || at_cas(word, &w, w | WORD_SLEEPERS, RELAXED, RELAXED)) {
            futex_wait(low_half(word), (uint32_t)(w | WORD_SLEEPERS), INT64_MAX);
            take = WORD_LOCKED | WORD_SLEEPERS; /* others may sleep still */
        }
    }
}

/* The word may be gone already: the address is only a key. */
void word_wake(at_u64 *word)
{
    futex_wake(low_half(word), 1);
}
