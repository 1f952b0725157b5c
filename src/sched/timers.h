/* SPDX-License-Identifier: MIT */
/*
 * Timers: each P has a heap of them. timers.c has the design.
 */
#ifndef PIRN_SCHED_TIMERS_H
#define PIRN_SCHED_TIMERS_H

#include "base/atomic.h"
#include "os/os.h"

struct timer;
struct timers;
struct waiter;

/*
 * What happens when it is time, in two kinds.
 * fire   called under the lock of the heap; gives who is to be made ready, or NULL. Afterwards the
 *        timer is touched no more: it may lie in the frame of who waits.
 * begin, act
 *        begin is called under the lock, to keep the timer alive; act after it, with begin's result.
 */
struct timer_kind {
    struct waiter *(*fire)(struct timer *t);
    uint64_t (*begin)(struct timer *t);
    void (*act)(struct timer *t, uint64_t begun);
};

struct timer {
    const struct timer_kind *kind;
    AT(struct timers *) heap; /* where it is pending; NULL: it is not */
    at_u32 generation; /* ++ each time that it is set; under that heap's lock, or not pending */
    /* under the lock of that heap */
    uint32_t at;
    int64_t when;
    int64_t period; /* 0: once */
};

struct timer_slot {
    int64_t when;  /* that of the timer, which is elsewhere in memory */
    uintptr_t who; /* the timer; or who sleeps, a waiter | SLOT_SLEEPER */
};

struct timers {
    at_u64 next; /* when the first is due, or PIRN_NEVER; changed under the lock */
    struct lock lock;
    /* under the lock */
    uint32_t n, room;
    struct timer_slot *slot; /* a 4-ary heap */
};

#endif
