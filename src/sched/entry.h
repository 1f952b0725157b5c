/* SPDX-License-Identifier: MIT */
/*
 * The current M, and the way into the runtime and out of it.
 */
#ifndef PIRN_SCHED_ENTRY_H
#define PIRN_SCHED_ENTRY_H

#include "sched/gmp.h"

extern ptrdiff_t m_tls_offset; /* 0 until the first runtime has started */

/* NULL on a thread that is not an M. Never keep it over a switch. */
static inline struct m *getm(void)
{
    ptrdiff_t offset = m_tls_offset;
    if (unlikely(!offset)) {
        return NULL;
    }
    return arch_thread_word(offset);
}

/*
 * fork.c: this is the child of a fork of a process in which a runtime ran. Plain: it is set before the child, which
 * has one thread, goes on. Every public call asks, in enter() or stop_point() if its goroutine is not asked there by
 * M_FORKED, or else before it does anything.
 */
extern bool forked;
COLD _Noreturn void forked_call(void);
static inline void not_forked(void)
{
    if (unlikely(forked)) {
        forked_call();
    }
}

_Noreturn void m_leave_for_good(struct m *mp);
void m_become_foreign(void);
static inline bool m_told_to_stop(const struct m *mp)
{
    return at_load(&mp->attention, RELAXED) & M_STOP;
}

/*
 * enter() is the first line of a public call that needs the P or takes a lock of pirn's, leave() its
 * last: in between the thread can't be preempted, and its P can't be taken. NULL on a foreign thread;
 * does not return once the runtime has been told to stop. entry.c has the design. They don't nest.
 */
void enter_slow(struct m *mp);
COLD _Noreturn void enter_twice(struct m *mp);
COLD _Noreturn void handler_may_not_wait(void);
void leave_slow(struct m *mp);

/* The next entry is with this memory, of the heap: it is freed if the goroutine ends there. */
static inline void bring(void *p)
{
    struct m *mp = getm();
    if (mp) {
        mp->brings = p;
    }
}

static inline struct m *enter(void)
{
    struct m *mp = getm();
    if (likely(mp)) {
        if (unlikely(at_load(&mp->where, RELAXED) != M_USER)) {
            enter_twice(mp);
        }
        at_store(&mp->where, M_RUNTIME, RELAXED);
        at_fence_light(); /* [E1] */
        if (unlikely(at_load(&mp->attention, RELAXED))) {
            enter_slow(mp);
        }
    } else {
        not_forked();
    }
    return mp;
}

/* By one that owes others something: it is not stopped, but if it has no P any more. */
struct m *enter_anyway(void);

/* By the M on which the goroutine is now. */
static inline void leave_from(struct m *mp)
{
    if (unlikely(at_load(&mp->attention, RELAXED))) {
        leave_slow(mp);
    } else {
        at_store(&mp->where, M_USER, RELEASE); /* [E2] */
    }
}

static inline void leave(void)
{
    struct m *mp = getm();
    if (likely(mp)) {
        leave_from(mp);
    }
}

/* For a call that needs neither the P nor a lock: it is only a place where a goroutine can end. */
void stop_here(struct m *mp);
static inline struct m *stop_point(void)
{
    struct m *mp = getm();
    if (unlikely(!mp)) {
        not_forked();
    } else if (unlikely(at_load(&mp->attention, RELAXED))) {
        stop_here(mp);
    }
    return mp;
}

/* Memory of the program's heap: never while the thread is in the runtime. Whoever holds malloc's lock
 * may have been preempted, and wait for the very P of the thread that waits for him. heap_alloc leaves
 * the runtime for it, so no lock may be held, and the P may be another afterwards. */
void *heap_alloc(size_t size); /* zeroed, or NULL */
void heap_free(void *p);
void free_garbage(struct m *mp);

#endif
