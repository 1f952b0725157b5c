/* SPDX-License-Identifier: MIT */
/*
 * The run queue of a P: a ring, and one slot in front of it. Here is what runs at every switch;
 * the rest is in runq.c.
 *
 * The owner puts at the tail; owner and thieves take at the head. Indices run freely and wrap at
 * 2^32; slot i lives at i % RING.
 *
 * Invariants
 * 1. tail - head <= RING.
 * 2. Only the owner writes tail and slots; head moves only by CAS.
 * 3. A slot is overwritten only after head has passed it.
 * 4. Only the owner makes next non-NULL.
 *
 * Memory order
 * [Q1] owner stores tail RELEASE    -> thief loads tail ACQUIRE: sees the slot and the G.
 * [Q2] thief's CAS of head RELEASE -> owner's load of head ACQUIRE in put: the reads of the
 *      slots are over before the owner overwrites them.
 * [Q4] every CAS of head RELEASE -> thief loads head ACQUIRE: it then sees a tail at least as new,
 *      so tail - head is never negative.
 * [Q3] owner's store or xchg of next RELEASE -> the thief that takes it, ACQUIRE.
 * A thief that read stale slots finds out because its CAS of head fails: head never returns
 * to an earlier value within 2^32 operations.
 *
 * Rejected: a Chase-Lev deque. It runs the youngest first, which is not Go's order, and its
 * owner needs a full fence at each take.
 */
#ifndef PIRN_SCHED_RUNQ_H
#define PIRN_SCHED_RUNQ_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/util.h"

struct g;

struct glist { /* a list through g.link */
    struct g *head, *tail;
    uint32_t n;
};
void glist_put(struct glist *l, struct g *gp);
struct g *glist_get(struct glist *l);

#if PIRN_SMALL
#define RING 4u
#else
#define RING 256u
#endif

struct runq {
    at_u32 head CACHE_ALIGNED; /* taken from here, by owner and thieves, with CAS */
    at_u32 tail CACHE_ALIGNED; /* put here, by the owner */
    AT(struct g *) next;       /* runnext: runs first, and inherits the time slice */
    AT(struct g *) slot[RING];
};

/* --- owner: needs the P ------------------------------------------------------------------------- */

/* At the tail. False: the ring is full, see runq_put_full_owner. */
static inline bool runq_put_owner(struct runq *q, struct g *gp)
{
    /* [Q2]. No model kills the mutant RELAXED: what goes wrong is a thief's load that sees a store
     * which comes later (load buffering), and the explorer has none. */
    uint32_t h = at_load(&q->head, ACQUIRE);
    uint32_t t = at_load(&q->tail, RELAXED);
    if (unlikely(t - h >= RING)) {
        return false;
    }
    at_store(&q->slot[t % RING], gp, RELAXED);
    at_store(&q->tail, t + 1, RELEASE); /* [Q1] */
    return true;
}

/* In front of all; returns who was there, whom this owner put. */
static inline struct g *runq_put_next_owner(struct runq *q, struct g *gp)
{
    if (!at_load(&q->next, RELAXED)) {   /* and stays so: invariant 4 */
        at_store(&q->next, gp, RELEASE); /* [Q3] */
        return NULL;
    }
    return at_xchg(&q->next, gp, RELEASE); /* [Q3] */
}

static inline struct g *runq_take_next_owner(struct runq *q)
{
    if (!at_load(&q->next, RELAXED)) {
        return NULL;
    }
    /* A thief may have been faster. RELEASE, for runq_empty: what was put in the ring before is
     * seen by whoever sees this. */
    return at_xchg(&q->next, NULL, RELEASE);
}

/* With many goroutines the stack of the next one is far from the cache: fetch a few ahead. */
void runq_prefetch(const struct runq *q, uint32_t h);

/* The head of the ring. */
static inline struct g *runq_get_owner(struct runq *q)
{
    uint32_t h = at_load(&q->head, RELAXED), t = at_load(&q->tail, RELAXED);
    for (;;) {
        if (t == h) {
            return NULL;
        }
        struct g *gp = at_load(&q->slot[h % RING], RELAXED);
        if (likely(at_cas(&q->head, &h, h + 1, RELEASE, RELAXED))) { /* [Q4] */
            if (t - h > 8) {
                runq_prefetch(q, h);
            }
            return gp;
        }
    }
}

/* A full ring: half of it and gp go to the overflow list, in order. False: a thief has made room. */
bool runq_put_full_owner(struct runq *q, struct g *gp, struct glist *overflow);
uint32_t runq_room_owner(const struct runq *q);
bool runq_valid(const struct runq *q); /* the invariants */

/* --- anybody ------------------------------------------------------------------------------------ */

/* Moves half of src into the ring of dst, which the caller owns and which is empty; returns one of
 * them to run. */
struct g *runq_steal(struct runq *dst, struct runq *src, uint32_t *stolen);
struct g *runq_steal_next(struct runq *src, struct g *seen);

/* Of the ring; exact for the owner only. */
static inline uint32_t runq_len(const struct runq *q)
{
    uint32_t h = at_load(&q->head, RELAXED), t = at_load(&q->tail, RELAXED);
    return t - h <= RING ? t - h : 0; /* read apart, a stranger may see nonsense */
}

bool runq_empty(const struct runq *q); /* ring and runnext as of one time: never a false true */

#endif
