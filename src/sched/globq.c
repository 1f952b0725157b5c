/* SPDX-License-Identifier: MIT */
/*
 * The global run queue: a list under sched.lock, for overflow, foreign threads and goroutines
 * that have used up their slice. A linked list, because putting must never allocate.
 *
 * Goroutines that were stopped in the midst of their code have a list of their own: each has a thread
 * that waits for it, so they never go to a ring, and when there is no other thread for a P theirs can
 * be found at once (p_heir_locked in idle.c).
 */
#include "sched/sched.h"

/* A hint: who must not miss anything has a fence of its own before it looks (idle.c). */
static void set_size(struct globq *q)
{
    at_store(&q->size, q->list.n + q->bound.n, RELAXED);
}

void globq_put_locked(struct globq *q, struct g *gp)
{
    glist_put(gp->flags & G_BOUND ? &q->bound : &q->list, gp);
    set_size(q);
}

void globq_put_list_locked(struct globq *q, struct glist *l)
{
    if (l->n == 0) {
        return;
    }
    if (q->list.tail) {
        q->list.tail->link = l->head;
    } else {
        q->list.head = l->head;
    }
    q->list.tail = l->tail;
    q->list.n += l->n;
    *l = (struct glist){0};
    set_size(q);
}

struct g *globq_get_bound_locked(struct globq *q)
{
    struct g *gp = glist_get(&q->bound);
    set_size(q);
    return gp;
}

/* A fair share of the queue, so that one P does not take what the others could run. */
static struct g *get_share(struct globq *q, struct runq *ring, uint32_t procs, uint32_t max)
{
    uint64_t n = min_u64(q->list.n, q->list.n / procs + 1);
    n = min_u64(n, max);
    n = min_u64(n, RING / 2);
    struct g *first = glist_get(&q->list);
    for (uint64_t room = max > 1 ? runq_room_owner(ring) : 0; n > 1 && room; n--, room--) {
        if (!runq_put_owner(ring, glist_get(&q->list))) {
            throw("globq: ring overflowed");
        }
    }
    return first;
}

/* Of the two lists in turn: the bound ones have had a slice each, so they can't complain. */
struct g *globq_get_locked(struct globq *q, struct runq *ring, uint32_t procs, uint32_t max)
{
    bool bound = q->bound.n && (q->bound_next || !q->list.n);
    struct g *gp = bound ? glist_get(&q->bound) : get_share(q, ring, procs, max);
    q->bound_next = !bound;
    set_size(q);
    return gp;
}
