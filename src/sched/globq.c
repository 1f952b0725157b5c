/* SPDX-License-Identifier: MIT */
/*
 * The global run queue: a list under sched.lock, for overflow, foreign threads and goroutines
 * that have used up their slice. A linked list, because putting must never allocate.
 */
#include "sched/sched.h"

/* A hint: who must not miss anything has a fence of its own before it looks (idle.c). */
static void set_size(struct globq *q)
{
    at_store(&q->size, q->list.n, RELAXED);
}

void globq_put_locked(struct globq *q, struct g *gp)
{
    glist_put(&q->list, gp);
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

/* A fair share of the queue, so that one P does not take what the others could run. */
struct g *globq_get_locked(struct globq *q, struct runq *ring, uint32_t procs, uint32_t max)
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
    set_size(q);
    return first;
}
