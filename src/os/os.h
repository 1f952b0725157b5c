/* SPDX-License-Identifier: MIT */
/*
 * What pirn needs of the operating system: the contract that a port writes
 * again. Nothing here knows of goroutines. Functions return 0 or -errno.
 */
#ifndef PIRN_OS_OS_H
#define PIRN_OS_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/util.h"

/* clock.c */
int64_t now_ns(void);           /* monotonic */
int64_t thread_cpu_ns(int tid); /* that a thread has used; tid 0: this one. 0: not known */

/* futex.c: sleeps while *word == value; deadline is absolute, INT64_MAX for none. False on time-out. */
bool futex_wait(const at_u32 *word, uint32_t value, int64_t deadline);
void futex_wake(const at_u32 *word, int n);

/*
 * note.c: one waiter, one wake-up. note_post may come before note_wait. After
 * the store in note_post the word is used only as a key, so the waiter may
 * take the memory back as soon as it has returned.
 */
struct note {
    at_u32 posted;
};
void note_clear(struct note *n);
void note_post(struct note *n);
void note_wait(struct note *n);
bool note_wait_until(struct note *n, int64_t deadline);

/* lock.c: a futex mutex for the runtime's own short critical sections. */
/* A thread takes locks in rising rank only: lockrank.c, docs/locks.md. */
enum lock_rank {
    RANK_NONE,
    RANK_LIFE,    /* starting and stopping the runtime */
    RANK_LATE,    /* foreign calls without a runtime */
    RANK_SIGNALS, /* who watches signals */
    RANK_HANDLER, /* the program's handler of the signal that preempts */
    RANK_SCHED,   /* idle lists, global queue, Ps and Ms */
    RANK_TIMERS,  /* the timers of a P */
    RANK_STACK,   /* the stack allocator of one class */
    RANK_G,       /* slabs and free Gs */
    RANK_LOCAL,   /* keys of goroutine-local values */
    RANK_RESOLVE, /* name lookups under way */
    RANK_FILES,   /* descriptors of calls under way */
    RANK_POOL,    /* jobs of the helper threads */
    RANK_URING,   /* operations for io_uring */
    RANK_POLLER,  /* making pollers */
    RANK_PROC,    /* asking /proc about threads */
    RANK_COUNT
};
struct lock {
    at_u32 state;
    enum lock_rank rank;
};
#define LOCK_INIT(r)                                                                               \
    {                                                                                              \
        .rank = (r)                                                                                \
    }
/*
 * Between two looks at a lock that another thread has: a microsecond or so. In that time its owner, which
 * has it in its cache, often takes it again and again; who looks all the time only slows it down.
 */
static inline void spin_wait(void)
{
    for (int i = 0; i < (PIRN_SMALL ? 1 : 30); i++) {
        at_pause();
    }
}

void lock(struct lock *l);
void unlock(struct lock *l);
void lock_must_hold(const struct lock *l); /* checked with PIRN_DEBUG_CHECKS only */

/* membarrier.c: a full fence in all threads; at_fence_light() is its partner. */
void fence_heavy(void);
extern at_u32 fence_light_is_full; /* no membarrier here: the partner must do a full one */

/* lockrank.c */
extern bool (*lock_allowed)(void); /* PIRN_DEBUG_CHECKS: may this thread take a lock here? */
void lock_check_allowed(void);
void lockrank_acquire(enum lock_rank rank);
void lockrank_release(enum lock_rank rank);
bool lockrank_holds(enum lock_rank rank);

/*
 * The same mutex in the low bit of a word whose other bits are the caller's:
 * objects of a word or two bring their own lock. Both halves of the pair return
 * or take the whole word; while the lock is held nobody else changes it. After
 * word_unlock's one store the word is only a key, so the object may be gone
 * already: who sleeps is counted elsewhere, in a table by address.
 */
#define WORD_LOCKED 1u
#define WORD_BEDS (PIRN_SMALL ? 1u : 64u)
extern at_u32 word_sleepers[WORD_BEDS];
uint64_t word_lock_slow(at_u64 *word);
void word_wake(at_u64 *word);

static inline at_u32 *word_bed(const at_u64 *word)
{
    return &word_sleepers[(uintptr_t)word / 64 % WORD_BEDS];
}

/* Returns the word without the lock bits. */
static inline uint64_t word_lock(at_u64 *word)
{
#if PIRN_DEBUG_CHECKS
    lock_check_allowed();
#endif
    uint64_t w = at_load(word, RELAXED);
    if (likely(!(w & WORD_LOCKED) && at_cas(word, &w, w | WORD_LOCKED, ACQUIRE, RELAXED))) {
        return w;
    }
    return word_lock_slow(word);
}

/* value has no lock bit. */
static inline void word_unlock_now(at_u64 *word, uint64_t value)
{
    at_store(word, value, RELEASE);
    at_fence_light(); /* [O1] */
    if (unlikely(at_load(&fence_light_is_full, RELAXED))) {
        at_fence(SEQ_CST); /* [O1]; a mutant that survives: in models the light fence is full */
    }
    if (unlikely(at_load(word_bed(word), RELAXED))) {
        word_wake(word);
    }
}

#if PIRN_FLAVOUR_MODEL
void word_unlock(at_u64 *word, uint64_t value); /* lock.c; a model may bring its own */
#else
static inline void word_unlock(at_u64 *word, uint64_t value)
{
    word_unlock_now(word, value);
}
#endif

/* thread.c */
#define THREAD_STACK ((size_t)256 << 10)
/* name may be NULL: the thread has one already, or gives itself one. */
int thread_create(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                  bool block_signals);
void thread_stack_bounds(void **lo, size_t *size);
/* The kernel's frame for a handler has all vector registers: up to 11 KB on present machines. */
#define ALTSTACK ((size_t)64 << 10)
void *
thread_altstack_begin(void); /* for signal handlers, if it has none; NULL: has, or no memory */
void thread_altstack_end(void *stack);
void thread_yield(void);
int thread_count(void); /* threads of this process, or -errno */

/* program.c */
bool program_binds_late(void); /* calls into shared libraries need more stack than is dense */

/* mem.c */
void *mem_map(size_t size);     /* zeroed, committed on touch; NULL if refused */
void *mem_reserve(size_t size); /* the same with MAP_NORESERVE, small pages only */
void mem_unmap(void *addr, size_t size);
int mem_drop_range(void *addr, size_t size); /* replace by fresh zero pages; drops page tables */
void mem_huge(void *addr, size_t size);      /* prefer huge pages */
enum guard_kind { GUARD_AUTO, GUARD_MADVISE, GUARD_MPROTECT, GUARD_NONE };
enum guard_kind mem_guard_probe(void); /* the best kind that works here */
struct mem_range {
    void *addr;
    size_t size;
};
#define MEM_BATCH 512
int mem_guard(enum guard_kind kind, const struct mem_range *ranges, int n);
int mem_drop(const struct mem_range *ranges, int n); /* give back the pages, keep guards */
extern at_u32 mem_fail_after; /* tests: the N-th mapping from now fails; 0 is off */

#endif
