/* SPDX-License-Identifier: MIT */
/*
 * The run queue of a P: a ring, and one slot in front of it.
 *
 * The owner puts at the tail; owner and thieves take at the head. Indices run
 * freely and wrap at 2^32; slot i lives at i % RING.
 *
 * Invariants
 * 1. tail - head <= RING.
 * 2. Only the owner writes tail and slots; head moves only by CAS.
 * 3. A slot is overwritten only after head has passed it.
 *
 * Memory order
 * [Q1] owner stores tail RELEASE    -> thief loads tail ACQUIRE: sees the slot and the G.
 * [Q2] thief's or owner's CAS of head RELEASE -> owner's load of head ACQUIRE in put: the
 *      reads of the slots are over before the owner overwrites them.
 * [Q3] owner's xchg of next RELEASE -> whoever takes it, ACQUIRE.
 * A thief that read stale slots finds out because its CAS of head fails: head never returns
 * to an earlier value within 2^32 operations.
 *
 * Rejected: a Chase-Lev deque. It runs the youngest first, which is not Go's order, and its
 * owner needs a full fence at each take.
 */
#include "sched/sched.h"

void glist_put(struct glist *l, struct g *gp)
{
    gp->link = NULL;
    if (l->tail) {
        l->tail->link = gp;
    } else {
        l->head = gp;
    }
    l->tail = gp;
    l->n++;
}

struct g *glist_get(struct glist *l)
{
    struct g *gp = l->head;
    if (gp) {
        l->head = gp->link;
        if (!l->head) {
            l->tail = NULL;
        }
        gp->link = NULL;
        l->n--;
    }
    return gp;
}

/* A full ring: half of it and gp go to the overflow list, in order. False if a thief was faster.
 * The slots stay as they are after the CAS, since only the owner writes them. */
static NOINLINE bool put_slow(struct runq *q, struct g *gp, uint32_t h, struct glist *overflow)
{
    uint32_t end = h + RING / 2;
    if (!at_cas(&q->head, &h, end, RELEASE, RELAXED)) { /* [Q2] */
        return false;
    }
    for (; h != end; h++) {
        glist_put(overflow, at_load(&q->slot[h % RING], RELAXED));
    }
    glist_put(overflow, gp);
    return true;
}

/* Puts gp at the tail. False: the ring was full, and *overflow holds half of it and gp, which
 * the caller must put on the global queue. */
bool runq_put_owner(struct runq *q, struct g *gp, struct glist *overflow)
{
    for (;;) {
        uint32_t h = at_load(&q->head, ACQUIRE); /* [Q2] */
        uint32_t t = at_load(&q->tail, RELAXED);
        if (likely(t - h < RING)) {
            at_store(&q->slot[t % RING], gp, RELAXED);
            at_store(&q->tail, t + 1, RELEASE); /* [Q1] */
            return true;
        }
        if (put_slow(q, gp, h, overflow)) {
            return false;
        }
    }
}

struct g *runq_put_next_owner(struct runq *q, struct g *gp)
{
    return at_xchg(&q->next, gp, ACQ_REL); /* [Q3] */
}

struct g *runq_take_next_owner(struct runq *q)
{
    if (!at_load(&q->next, RELAXED)) {
        return NULL;
    }
    return at_xchg(&q->next, NULL, ACQUIRE); /* [Q3]; a thief may have been faster */
}

struct g *runq_get_owner(struct runq *q, bool *inherits)
{
    struct g *gp = runq_take_next_owner(q);
    if (gp) {
        *inherits = true;
        return gp;
    }
    *inherits = false;
    uint32_t h = at_load(&q->head, RELAXED);
    for (;;) {
        uint32_t t = at_load(&q->tail, RELAXED);
        if (t == h) {
            return NULL;
        }
        gp = at_load(&q->slot[h % RING], RELAXED);
        if (likely(at_cas(&q->head, &h, h + 1, RELEASE, RELAXED))) { /* [Q2] */
            return gp;
        }
    }
}

uint32_t runq_len(const struct runq *q)
{
    uint32_t h = at_load(&q->head, RELAXED), t = at_load(&q->tail, RELAXED);
    return t - h <= RING ? t - h : 0; /* read apart, a stranger may see nonsense */
}

uint32_t runq_room_owner(const struct runq *q)
{
    return RING - (at_load(&q->tail, RELAXED) - at_load(&q->head, ACQUIRE));
}

/*
 * Half of src, rounded up, into dst. tail is read after head, so n may be too big for the time
 * of the head (then it is above RING / 2: read again) but never too small.
 */
struct g *runq_steal(struct runq *dst, struct runq *src, uint32_t *stolen)
{
    uint32_t h = at_load(&src->head, ACQUIRE), dt = at_load(&dst->tail, RELAXED), n;
    do {
        uint32_t t = at_load(&src->tail, ACQUIRE); /* [Q1] */
        n = t - h;
        n -= n / 2;
        if (n == 0) {
            return NULL;
        }
        if (n > RING / 2) { /* head and tail of different times */
            h = at_load(&src->head, ACQUIRE);
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            struct g *gp = at_load(&src->slot[(h + i) % RING], RELAXED);
            at_store(&dst->slot[(dt + i) % RING], gp, RELAXED);
        }
    } while (n > RING / 2 || !at_cas(&src->head, &h, h + n, ACQ_REL, ACQUIRE)); /* [Q2] */
    *stolen = n;
    n--;
    struct g *gp = at_load(&dst->slot[(dt + n) % RING], RELAXED);
    if (n) {
        at_store(&dst->tail, dt + n, RELEASE); /* [Q1] */
    }
    return gp;
}

/* Takes runnext if it is still the G that was seen there. */
struct g *runq_steal_next(struct runq *src, struct g *seen)
{
    return at_cas(&src->next, &seen, NULL, ACQUIRE, RELAXED) ? seen : NULL; /* [Q3] */
}

/*
 * The owner may move a G from runnext to the ring (a newcomer kicks it out), so the two must be
 * read as of one time: no change of tail in between.
 */
bool runq_empty(const struct runq *q)
{
    for (;;) {
        uint32_t h = at_load(&q->head, ACQUIRE);
        uint32_t t = at_load(&q->tail, ACQUIRE);
        struct g *next = at_load(&q->next, ACQUIRE);
        if (t == at_load(&q->tail, RELAXED)) {
            return h == t && !next;
        }
    }
}

bool runq_valid(const struct runq *q)
{
    uint32_t h = at_load(&q->head, ACQUIRE), t = at_load(&q->tail, RELAXED);
    if (t - h > RING) {
        return false;
    }
    for (uint32_t i = h; i != t; i++) {
        struct g *gp = at_load(&q->slot[i % RING], RELAXED);
        if (!gp) {
            return false;
        }
    }
    return true;
}
