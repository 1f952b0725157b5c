/* SPDX-License-Identifier: MIT */
/*
 * Waiting for one of several things: channel operations, a deadline, and at most one more that has
 * its own word lock. select.c has the design.
 */
#ifndef PIRN_SYNC_SELECT_H
#define PIRN_SYNC_SELECT_H

#include "sync/chan.h"

#define SELECT_FEW 8 /* cases whose operations fit in the frame of the call */

struct select {
    pirn_case *cases;
    struct chan_op *ops; /* one for each case, while it waits */
    int n;
    int locked;      /* channels, without duplicates; their cases by order_ */
    bool in_order;   /* the first that is ready, not any */
    bool fds;        /* there are descriptors among the cases */
    bool fd_tries;   /* the first case is one, and who waits will try it: io/io.c */
    bool fd_outlive; /* a thread can go on after the runtime has ended */
    bool fd_timed;   /* it is told of new deadlines; fd_edge: how many there were: io/fd.c */
    uint32_t fd_edge;
    at_u32 armed; /* with descriptors: the commit is over */
    winner_t winner;
    struct waiter *waiter;
    struct waiter foreign;
    int64_t deadline; /* PIRN_NEVER: none */
    struct timer timer;
    struct unlock_to also; /* word: unlocked with the channels; NULL: none */
};

#define SELECT_INIT(cases_, ops_, n_, deadline_)                                                   \
    {                                                                                              \
        .cases = (cases_), .ops = (ops_), .n = (n_), .deadline = (deadline_), .timer = {           \
            .kind = &select_timer                                                                  \
        }                                                                                          \
    }
extern const struct timer_kind select_timer;

/* Carries out a case that is ready: its index. -1: none is, and all channels are locked. */
int select_try(struct visit v, struct select *s);
/* After that: gives back the locks. */
void select_unlock(struct select *s);
/* Or waits, and then visit_waited_end(). Who came: select_timer_of(s), select_also_of(s), or an operation,
 * for select_case_of(). */
void *select_wait(struct visit v, struct select *s, enum wait_reason reason);

static inline void *select_timer_of(struct select *s)
{
    return &s->timer;
}
static inline void *select_also_of(struct select *s)
{
    return s->also.word;
}

int select_case_of(const struct select *s, void *winner);

/* The wait record, for the queue of the thing that is not a channel; before select_wait. */
static inline struct waiter *select_waiter(struct visit v, struct select *s)
{
    return s->waiter = waiter_of(v.mp, &s->foreign, s);
}

static inline bool select_claim(struct select *s, void *who)
{
    void *none = NULL;
    return at_cas(&s->winner, &none, who, RELAXED, RELAXED);
}

/* By who takes the record off that queue: false: something else came first, it is not to be woken. */
static inline bool select_claim_also(struct select *s)
{
    return select_claim(s, s->also.word);
}

#endif
