/* SPDX-License-Identifier: MIT */
/* The rarer operations on a run queue; runq.h has the invariants and the labels. */
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

/* The slots stay as they are after the CAS, since only the owner writes them. */
bool runq_put_full_owner(struct runq *q, struct g *gp, struct glist *overflow)
{
    uint32_t h = at_load(&q->head, RELAXED), end = h + RING / 2;
    if (at_load(&q->tail, RELAXED) - h < RING
        || !at_cas(&q->head, &h, end, RELEASE, RELAXED)) { /* [Q4] */
        return false;
    }
    for (; h != end; h++) {
        glist_put(overflow, at_load(&q->slot[h % RING], RELAXED));
    }
    glist_put(overflow, gp);
    return true;
}

/* A G that is ahead may be taken by a thief meanwhile: sp is only a hint where to look. */
__attribute__((no_sanitize("thread"))) void runq_prefetch(const struct runq *q, uint32_t h)
{
    const struct g *far = at_load(&q->slot[(h + 8) % RING], RELAXED);
    const struct g *near = at_load(&q->slot[(h + 4) % RING], RELAXED);
    __builtin_prefetch(far);
    if (near->sp) {
        __builtin_prefetch(near->sp);
        __builtin_prefetch((const char *)near->sp + CACHE_LINE);
    }
}

/* At least; runq_put_owner looks again, in order. */
uint32_t runq_room_owner(const struct runq *q)
{
    return RING - (at_load(&q->tail, RELAXED) - at_load(&q->head, RELAXED));
}

/*
 * Half of src, rounded up, into dst. head and tail are not of one time: if n is above RING / 2 they
 * are read again, now in order. If it is too small, the thief takes less.
 */
struct g *runq_steal(struct runq *dst, struct runq *src, uint32_t *stolen)
{
    uint32_t h = at_load(&src->head, RELAXED), dt = at_load(&dst->tail, RELAXED), n;
    do {
        uint32_t t = at_load(&src->tail, ACQUIRE); /* [Q1] */
        n = t - h;
        n -= n / 2;
        if (n == 0) {
            return NULL;
        }
        if (n > RING / 2) {                   /* head and tail of different times */
            h = at_load(&src->head, ACQUIRE); /* [Q4] */
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            struct g *gp = at_load(&src->slot[(h + i) % RING], RELAXED);
            at_store(&dst->slot[(dt + i) % RING], gp, RELAXED);
        }
    } while (n > RING / 2 || !at_cas(&src->head, &h, h + n, RELEASE, RELAXED)); /* [Q2] [Q4] */
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
        uint32_t t = at_load(&q->tail, RELAXED);
        struct g *next = at_load(&q->next, ACQUIRE);
        if (t == at_load(&q->tail, RELAXED)) {
            return h == t && !next;
        }
    }
}

bool runq_valid(const struct runq *q)
{
    uint32_t h = at_load(&q->head, RELAXED), t = at_load(&q->tail, RELAXED);
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
