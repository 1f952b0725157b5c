/* SPDX-License-Identifier: MIT */
/*
 * Inside the poll descriptors: the queues of those who wait, shared by pd.c and pd_ring.c. All under the
 * lock of the poll descriptor; who is taken off is made ready after it.
 */
#ifndef PIRN_IO_PD_H
#define PIRN_IO_PD_H

#include "io/fd.h"
#include "os/poll.h"

static inline void put_locked(struct pd *pd, struct chan_op *op)
{
    struct chan_queue *q = &pd->q[op->fd.mode];
    op->queued = true;
    op->next = NULL;
    op->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = op;
    q->last = op;
    netpoll_waits(1);
}

static inline void remove_locked(struct pd *pd, struct chan_op *op)
{
    struct chan_queue *q = &pd->q[op->fd.mode];
    op->queued = false;
    *(op->prev ? &op->prev->next : &q->first) = op->next;
    *(op->next ? &op->next->prev : &q->last) = op->prev;
    netpoll_waits(-1);
}

struct taken {
    struct waiter *first, **last;
};

/* False: something else came first, it is not to be woken. */
static inline bool wake_locked(struct pd *pd, struct chan_op *op, int why, struct taken *t)
{
    void *none = NULL;
    remove_locked(pd, op);
    if (op->winner && !at_cas(op->winner, &none, (void *)op, RELAXED, RELAXED)) {
        return false;
    }
    op->fd.why = (int16_t)why;
    op->ok = true;
    op->waiter->next = NULL;
    *t->last = op->waiter;
    t->last = &op->waiter->next;
    return true;
}

/* One of those who try; and who only watches, if it is ready still: the event may be of what somebody has taken
 * before they came. Then another is to come. */
static inline void wake_ready_locked(struct pd *pd, int fd, enum fd_mode mode, struct taken *t)
{
    bool woken = false, looked = false, ready = false;
    for (struct chan_op *op = pd->q[mode].first, *next; op; op = next) {
        next = op->next;
        if (op->fd.watches && !looked) {
            ready = fd_is_ready(fd, mode);
            looked = true;
        }
        if (op->fd.watches ? ready : !woken) {
            woken |= wake_locked(pd, op, 0, t) && !op->fd.watches;
        }
    }
}

/* One of those who try. Who only watches was told by the event, or looked when it was queued. */
static inline void pass_on_locked(struct pd *pd, enum fd_mode mode, struct taken *t)
{
    for (struct chan_op *op = pd->q[mode].first, *next; op; op = next) {
        next = op->next;
        if (!op->fd.watches && wake_locked(pd, op, 0, t)) {
            return;
        }
    }
}

static inline void news_locked(struct pd *pd, enum fd_mode mode)
{
    at_store(&pd->edges[mode], at_load(&pd->edges[mode], RELAXED) + 1, RELAXED); /* [D1] */
}

/* Everybody, in both directions. */
static inline void wake_all_locked(struct pd *pd, int why, struct taken *t)
{
    for (int mode = FD_READ; mode <= FD_WRITE; mode++) {
        news_locked(pd, (enum fd_mode)mode);
        while (pd->q[mode].first) {
            wake_locked(pd, pd->q[mode].first, why, t);
        }
    }
}

static inline void event_locked(struct pd *pd, int fd, uint32_t ready, struct taken *t)
{
    pd->odd |= (ready & POLL_ODD) != 0;
    if (ready & POLL_READ) {
        news_locked(pd, FD_READ);
        pd->empty = false;
        wake_ready_locked(pd, fd, FD_READ, t);
    }
    if (ready & POLL_WRITE) {
        news_locked(pd, FD_WRITE);
        wake_ready_locked(pd, fd, FD_WRITE, t);
    }
}

/* Nobody uses it any more. The result is to be closed by the caller, where it may wait; -1: nothing; or
 * PD_LETS_GO. */
int pd_close_locked(struct pd *pd, int fd, int *err);

/* pd_ring.c */
void pd_forget_leavers_locked(struct pd *pd);

#endif
