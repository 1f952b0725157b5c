/* SPDX-License-Identifier: MIT */
/*
 * What objects with a word lock share: a queue of wait records in one pointer, the last of a ring,
 * whose next is the first; and giving back the lock once the goroutine has left its stack.
 */
#ifndef PIRN_SYNC_WAITQ_H
#define PIRN_SYNC_WAITQ_H

#include "sched/park.h"

/* The usual commit action: unlocks the word lock of the object. */
struct unlock_to {
    at_u64 *word;
    uint64_t value;
};

static inline bool commit_unlock(struct g *gp, void *arg)
{
    (void)gp;
    struct unlock_to u = *(struct unlock_to *)arg; /* the waiter's frame: gone once unlocked */
    word_unlock(u.word, u.value);
    return true;
}

/* An object's lock is held, and the caller must wait. */
static inline void visit_must_wait(struct visit v, at_u64 *word, uint64_t value, const char *call)
{
    if (unlikely(!visit_can_wait(v))) {
        word_unlock(word, value);
        visit_cant_wait(call);
    }
}

void mutex_lock_again(struct visit v,
                      struct pirn_mutex *m); /* by a call that has waited; ends the visit */
/* mutex.c. For a caller that is inside a visit, and may hold another object's lock: false if the
 * mutex is not locked, which is to be reported when neither is so any more. */
bool mutex_unlock_visiting(struct pirn_mutex *m);
_Noreturn void mutex_not_locked(void);
/* Of a mutex's word: the goroutine that has it. For debug/cycles.c. */
uint64_t mutex_owner(uint64_t state);

/* forget.c: the runtime ends, and with it a goroutine inside a wait. waiting: nobody has made it
 * ready. Others that may go on because of that are made ready. */
void chan_forget(struct waiter *w, bool waiting);
void select_forget(struct waiter *w);
void mutex_forget(struct waiter *w);
void rwmutex_forget(struct waiter *w);
void cond_forget(struct waiter *w);
void timer_forget(struct waiter *w);
void sem_forget(struct waiter *w);
void barrier_forget(struct waiter *w);
void wg_forget_goroutines(struct pirn_wg *wg);
void group_forget(struct waiter *w); /* in pirn_group_wait, before its select */
void group_forget_room(struct waiter *w);

/* waits.c: calls fn with all that it waits for; block: at is the begin of a block of memory of its own. False:
 * it also waits for something that comes by itself, or that is not known. */
typedef void wait_object_fn(const void *at, size_t size, bool block, void *arg);
bool sync_waits_for(const struct waiter *w, enum wait_reason reason, wait_object_fn *fn, void *arg);

static inline void waitq_put(void **q, struct waiter *w)
{
    struct waiter *last = *q;
    if (last) {
        w->prev = last;
        w->next = last->next;
        last->next->prev = w;
        last->next = w;
    } else {
        w->prev = w->next = w;
    }
    *q = w;
}

static inline void waitq_put_first(void **q, struct waiter *w)
{
    struct waiter *last = *q;
    waitq_put(q, w);
    *q = last ? last : w;
}

static inline struct waiter *waitq_first(void **q)
{
    struct waiter *last = *q;
    return last ? last->next : NULL;
}

/* Takes out the one, wherever it is; false: it is not there. */
static inline bool waitq_remove(void **q, struct waiter *w)
{
    if (!w->next) {
        return false;
    }
    if (w->next == w) {
        *q = NULL;
    } else {
        w->prev->next = w->next;
        w->next->prev = w->prev;
        *q = *q == w ? w->prev : *q;
    }
    w->next = NULL;
    return true;
}

static inline struct waiter *waitq_take(void **q)
{
    struct waiter *first = waitq_first(q);
    if (first) {
        waitq_remove(q, first);
    }
    return first;
}

/* All, as a list. */
static inline struct waiter *waitq_take_all(void **q)
{
    struct waiter *last = *q, *first = waitq_first(q);
    if (last) {
        last->next = NULL;
    }
    *q = NULL;
    return first;
}

#endif
