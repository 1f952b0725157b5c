/* SPDX-License-Identifier: MIT */
/*
 * Gs: where they come from and how to find them all.
 *
 * They are cut from slabs that live as long as the runtime, so a stale pointer to a G is still a
 * pointer to a G, and a walk over the slabs sees every goroutine there ever was. Free ones are on
 * a list of the P, and behind that on a central list that is exchanged in batches.
 */
#include "sched/sched.h"

#include <stdlib.h>

#define BATCH (PIRN_SMALL ? 2u : 64u)
#define SLAB_FIRST ((size_t)(PIRN_FLAVOUR_MODEL ? 4 : 64) << 10)
#define SLAB_MOST ((size_t)2 << 20)

struct slab {
    struct slab *next;
    size_t size;
    at_u32 ncut; /* Gs cut so far; they follow the header */
    uint32_t room;
} CACHE_ALIGNED;

static struct lock g_lock = LOCK_INIT(RANK_G);
static AT(struct slab *) slabs; /* newest first; written under g_lock */
static struct g *central;
static uint32_t ncentral;

static struct g *slab_gs(struct slab *s)
{
    return (struct g *)(void *)(s + 1);
}

static struct slab *slab_add_locked(void)
{
    struct slab *old = at_load(&slabs, RELAXED);
    size_t size = old ? (size_t)min_u64(old->size * 2, SLAB_MOST) : SLAB_FIRST;
    struct slab *s = mem_map(size);
    if (!s) {
        return NULL;
    }
    if (size == SLAB_MOST) {
        mem_huge(s, size);
    }
    s->next = old;
    s->size = size;
    s->room = (uint32_t)((size - sizeof *s) / sizeof(struct g));
    at_store(&slabs, s, RELEASE); /* for g_for_each */
    return s;
}

/* Up to n Gs, linked; NULL if there is no memory. */
static struct g *take_locked(uint32_t n, uint32_t *got)
{
    struct g *list = NULL;
    *got = 0;
    while (*got < n) {
        struct g *gp = central;
        if (gp) {
            central = gp->link;
            ncentral--;
        } else {
            struct slab *s = at_load(&slabs, RELAXED);
            if (!s || at_load(&s->ncut, RELAXED) == s->room) {
                if (*got || !(s = slab_add_locked())) {
                    break;
                }
            }
            gp = &slab_gs(s)[at_load(&s->ncut, RELAXED)];
            at_count(&s->ncut, 1);
        }
        gp->link = list;
        list = gp;
        ++*got;
    }
    return list;
}

struct g *g_alloc_slow(struct p *pp)
{
    uint32_t got;
    lock(&g_lock);
    struct g *gp = take_locked(pp ? BATCH : 1, &got);
    unlock(&g_lock);
    if (gp && pp) {
        pp->gfree = gp->link;
        pp->ngfree = got - 1;
    }
    return gp;
}

static void give_back(struct p *pp, uint32_t n)
{
    lock(&g_lock);
    for (; n && pp->gfree; n--) {
        struct g *gp = pp->gfree;
        pp->gfree = gp->link;
        pp->ngfree--;
        gp->link = central;
        central = gp;
        ncentral++;
    }
    unlock(&g_lock);
}

/* pp is NULL on a foreign thread whose spawn failed half way; else its list is full. */
void g_free_slow(struct p *pp, struct g *gp)
{
    if (!pp) {
        lock(&g_lock);
        gp->link = central;
        central = gp;
        ncentral++;
        unlock(&g_lock);
        return;
    }
    give_back(pp, G_CACHE / 2);
    g_free(pp, gp);
}

void g_flush(struct p *pp)
{
    give_back(pp, UINT32_MAX);
}

uint64_t g_new_id_slow(struct p *pp)
{
    if (!pp) {
        return at_add(&sched.next_id, 1, RELAXED);
    }
    pp->id_next = at_add(&sched.next_id, 16, RELAXED);
    pp->id_end = pp->id_next + 16;
    return pp->id_next++;
}

struct gextra *g_extra(struct g *gp)
{
    if (!gp->extra) {
        gp->extra = heap_alloc(sizeof *gp->extra);
    }
    return gp->extra;
}

void g_at_end(struct at_end *e)
{
    struct m *mp = getm();
    struct gextra *x = mp ? g_extra(mp->curg) : NULL;
    if (x) {
        e->next = x->at_end;
        x->at_end = e;
    }
}

void g_at_end_run(struct at_end *e)
{
    struct m *mp = getm();
    struct gextra *x = mp ? mp->curg->extra : NULL;
    if (x && x->at_end == e) {
        x->at_end = e->next;
    }
    e->fn(e, false);
}

static void drop_contexts(struct gextra *x)
{
    struct pirn_ctx **all[] = {&x->ctx, &x->own_ctx, &x->last_ctx};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (*all[i]) {
            ctx_unref(*all[i]);
            *all[i] = NULL;
        }
    }
}

/* By the stop. Its frames are still there. */
void g_extra_dropped(struct g *gp)
{
    struct gextra *x = gp->extra;
    for (struct at_end *e; x && (e = x->at_end);) {
        x->at_end = e->next;
        e->fn(e, true);
    }
}

/* By the goroutine itself, at its end: this may call the program, which may do anything. */
void g_extra_end(struct g *gp)
{
    struct gextra *x = gp->extra;
    while (x->at_end) {
        g_at_end_run(x->at_end);
    }
    local_end(gp);
    x->name[0] = '\0';
    x->labels[0] = '\0';
    x->locked = 0;
    if (x->ctx || x->own_ctx) {
        enter_anyway();
        drop_contexts(x);
        leave();
    }
}

/* Every goroutine that is not idle, newest slab first. Others may run meanwhile. */
void g_for_each(void (*fn)(struct g *, void *), void *arg)
{
    for (struct slab *s = at_load(&slabs, ACQUIRE); s; s = s->next) {
        uint32_t n = at_load(&s->ncut, RELAXED);
        for (uint32_t i = 0; i < n; i++) {
            struct g *gp = &slab_gs(s)[i];
            if (at_load(&gp->status, ACQUIRE) != G_IDLE) {
                fn(gp, arg);
            }
        }
    }
}

/* What they lie in. */
void g_for_each_slab(range_fn *fn, void *arg)
{
    for (struct slab *s = at_load(&slabs, ACQUIRE); s; s = s->next) {
        fn(s, s->size, arg);
    }
}

/*
 * First all that have ended, then all that were spawned: so one that is spawned on a P and ends on
 * another meanwhile is counted once too often, and never less than nothing. [C1] the ended count
 * is stored RELEASE and loaded ACQUIRE: who sees the end sees the spawn.
 */
uint32_t g_count(void)
{
    uint64_t ended = 0, spawned = 0; /* they end on Ps only */
    uint32_t n = at_load(&sched.nallp, ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        ended += at_load(&at_load(&sched.allp[i], RELAXED)->counts.ended, ACQUIRE); /* [C1] */
    }
    n = at_load(&sched.nallp, ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        spawned += at_load(&at_load(&sched.allp[i], RELAXED)->counts.spawned, RELAXED);
    }
    spawned += at_load(&sched.counts.spawned, RELAXED);
    return (uint32_t)(spawned - ended);
}

/* keep: a thread was left behind and may still come by. */
void g_fini(bool keep)
{
    for (struct slab *s = at_load(&slabs, RELAXED), *next; s && !keep; s = next) {
        next = s->next;
        for (uint32_t i = 0; i < at_load(&s->ncut, RELAXED); i++) {
            struct g *gp = &slab_gs(s)[i];
            if (gp->stack_hi) {
                tool_unfinished(&gp->tool);
                tool_stack_end(&gp->tool);
            }
            if (gp->extra) {
                free(gp->extra->locals);
                drop_contexts(gp->extra);
                free(gp->extra);
            }
        }
        mem_unmap(s, s->size);
    }
    at_store(&slabs, NULL, RELAXED);
    central = NULL;
    ncentral = 0;
}
