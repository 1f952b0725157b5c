/* SPDX-License-Identifier: MIT */
/*
 * Inside a channel; chan.c has the design, select.c is the other user.
 */
#ifndef PIRN_SYNC_CHAN_H
#define PIRN_SYNC_CHAN_H

#include <string.h>

#include "sync/waitq.h"

struct pirn_timer;

/* The word: a word lock (os/lock.c), flags, and the number of elements in the buffer. */
#define CHAN_CLOSED ((uint64_t)4)
#define CHAN_RECEIVERS ((uint64_t)8) /* somebody is in the queue */
#define CHAN_SENDERS ((uint64_t)16)
#define CHAN_TIMER ((uint64_t)32) /* it has one */
#define CHAN_FD ((uint64_t)64)    /* it has one, which tells whether it can be received from */
#define CHAN_ONE ((uint64_t)256)  /* one element */
#define CHAN_MOST ((size_t)1 << 55)

typedef AT(void *) winner_t;

/* One queued operation, in the frame of the call that waits. */
struct chan_op {
    struct chan_op *next, *prev;
    struct waiter *waiter; /* who waits */
    winner_t *winner;      /* of a select: the operation that was chosen; NULL: not in a select */
    union {
        pirn_chanv *chan;
        struct {
            int number;
            uint32_t edge; /* what it knows: pd.edges, or pd.times; once it watches, pd.life;
                              after pd_disarm(), what is left to be done */
            uint8_t mode;  /* enum fd_mode */
            bool watches;  /* wants to know that it is ready, and takes nothing */
            bool timed;    /* then: and of new deadlines */
            bool counted;  /* then: as one who uses it */
            bool outlives; /* a thread's: it goes on without the runtime, once that has ended */
            bool lets_go;  /* pd_settle() is left to be done */
            int16_t why;   /* it has ended */
        } fd;              /* on a descriptor: io/pd.c */
    };
    bool sends;
    void *elem; /* the value to send, or where to put the one that comes; may be NULL */
    bool ok;    /* done by a partner; false: the channel was closed */
    bool queued;
};

struct chan_queue {
    struct chan_op *first, *last;
};

struct pirn_chanv {
    at_u64 word;
    size_t cap, elem;
    size_t head; /* where the oldest element is */
    struct chan_queue receivers, senders;
    at_u32 refs;
    uint32_t selects;         /* that will come back to take an operation off; under the lock */
    bool dead;                /* the last reference is gone */
    bool fd_on;               /* what the descriptor says */
    int fd;                   /* pirn_chan_fd; under the lock */
    struct pirn_timer *timer; /* that sends to it, and goes with it; it looks unbuffered then */
    _Alignas(16) unsigned char buf[];
};

/* time/timer.c: of a channel with a timer. */
void timer_chan_look(struct pirn_timer *t);       /* it may be due, and nobody has got to it */
bool timer_chan_end_locked(struct pirn_timer *t); /* stops it; true: it may be freed */
void timer_chan_free(struct pirn_timer *t);

static inline size_t chan_count(uint64_t word)
{
    return word / CHAN_ONE;
}

/* Could it be carried out at once? Panics come at once too. */
static inline bool chan_can_send(const pirn_chanv *c, uint64_t word)
{
    return chan_count(word) < c->cap || (word & (CHAN_RECEIVERS | CHAN_CLOSED));
}

static inline bool chan_can_recv(uint64_t word)
{
    return chan_count(word) > 0 || (word & (CHAN_SENDERS | CHAN_CLOSED));
}

/* A timer that is due sends now, if it has not yet. Not under the lock. */
static inline void chan_look(pirn_chanv *c)
{
    if (unlikely(at_load(&c->word, RELAXED) & CHAN_TIMER)) {
        timer_chan_look(c->timer);
    }
}

/* For a detector of races: a time is received after its timer was set. The channel may be gone. */
static inline void chan_say_received(const pirn_chanv *c, bool received)
{
    if (received) {
        tool_acquire(&c->timer);
    }
}

/* Under the lock. Each carries the operation out if it can be, unlocks, and makes the partner ready;
 * false: it must wait, and the lock is still held. Who sends has seen that it is not closed. */
bool chan_send_locked(pirn_chanv *c, uint64_t word, const void *elem);
bool chan_recv_locked(pirn_chanv *c, uint64_t word, void *elem, bool *ok);

void chan_put_locked(struct chan_op *op);
void chan_set_timer(pirn_chanv *c, struct pirn_timer *t);
bool chan_close(pirn_chanv *c);   /* by who is inside a visit, or on g0 */
void chan_release(pirn_chanv *c); /* the same; not one with a timer */
/* Under the lock, which it gives back. Frees it, if the last reference and all who come back are gone. */
void chan_unlock_or_free(pirn_chanv *c);

/* Takes it off its queue if it is still there. May free the channel. */
void chan_leave(struct chan_op *op);
/* The word of c as its queues are now. */
uint64_t chan_word_locked(const pirn_chanv *c, uint64_t word);
/* chan_fd.c */
void chan_tell_fd(pirn_chanv *c, uint64_t word); /* under the lock: word is what it will be */
void chan_fd_close(pirn_chanv *c);
void chan_unlock(pirn_chanv *c);                      /* after its queues may have changed */
void chan_unlock_empty(pirn_chanv *c, uint64_t word); /* drops what is in the buffer */

#endif
