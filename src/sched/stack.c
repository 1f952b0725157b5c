/* SPDX-License-Identifier: MIT */
/*
 * Stacks: the side that a P sees.
 *
 * A goroutine gets its stack when it first runs, not when it is spawned: a million goroutines
 * that each run to their end one after another use one stack, still warm in the cache. What a
 * spawn takes is a promise that a slot will be there, so that running out of address space is
 * an error of the spawn and never a surprise later.
 *
 * Per P and class: a LIFO of free slots (the last freed is the warmest) and a number of promises,
 * both filled and emptied in batches from the pool (stackmem.c).
 *
 * Invariants
 * 1. Every live goroutine holds one promise of its class.
 * 2. total slots >= promises + Ps * cache size. So when a goroutine with a promise finds its P's
 *    cache empty, the pool has a slot.
 */
#include "sched/stack.h"

#include <errno.h>

int stack_class(size_t size)
{
    if (size == 0 || size > (size_t)1 << 30) {
        return -EINVAL;
    }
    for (int class = 0; class < STACK_CLASSES; class ++) {
        if (size <= stack_class_size(class)) {
            return class;
        }
    }
    return -EINVAL;
}

size_t stack_class_size(int class)
{
    return class < STACK_DENSE ? (size_t)2048 << class : (size_t)65536 << (class - STACK_DENSE);
}

/* A wide guard needs no stack probes in the caller's code; small slots can't afford it. */
size_t stack_guard_size(int class)
{
    return class < STACK_DENSE ? 0 : min_u64(65536, stack_class_size(class) / 4);
}

/* Caches of big slots are short: they pin address space (invariant 2). */
uint32_t stack_cache_cap(int class)
{
    uint64_t fit = ((uint64_t)64 << 20) / stack_class_size(class);
    return (uint32_t)max_u64(2, min_u64(STACK_CACHE, fit));
}

void *stack_lo(const struct g *gp)
{
    return (char *)gp->stack_hi - stack_class_size(gp->class) + stack_guard_size(gp->class);
}

int stack_promise(struct p *pp, int class)
{
    if (!pp) {
        return pool_promise(class, 1);
    }
    struct stack_cache *c = &pp->stacks[class];
    if (unlikely(c->promises == 0)) {
        if (pool_promise(class, STACK_BATCH) == 0) {
            c->promises = STACK_BATCH;
        } else if (pool_promise(class, 1) == 0) {
            c->promises = 1;
        } else {
            return -ENOMEM;
        }
    }
    c->promises--;
    return 0;
}

void stack_unpromise(struct p *pp, int class)
{
    if (!pp) {
        pool_unpromise(class, 1);
        return;
    }
    struct stack_cache *c = &pp->stacks[class];
    if (unlikely(++c->promises > 4 * STACK_BATCH)) {
        pool_unpromise(class, STACK_BATCH);
        c->promises -= STACK_BATCH;
    }
}

/* Fills the cache of the P. On g0: it may map, guard and so take some stack itself. */
void stack_refill_g0(struct p *pp, int class)
{
    struct stack_cache *c = &pp->stacks[class];
    uint32_t want = (uint32_t)min_u64(STACK_BATCH, stack_cache_cap(class) / 2);
    c->n = pool_take(class, c->slot, want);
    if (c->n == 0) {
        throw("stack: the slot that was promised to a goroutine is missing");
    }
}

/* Takes the stack of a goroutine that has left it for good. */
void stack_give_owner(struct p *pp, struct g *gp)
{
    struct stack_cache *c = &pp->stacks[gp->class];
    uint32_t cap = stack_cache_cap(gp->class);
    if (unlikely(c->n == cap)) { /* the coldest half goes */
        pool_give(gp->class, c->slot, cap / 2);
        c->n -= cap / 2;
        memmove(c->slot, c->slot + cap / 2, c->n * sizeof c->slot[0]);
    }
    c->slot[c->n++] = (uintptr_t)gp->stack_hi | (gp->flags & G_UNGUARDED ? SLOT_UNGUARDED : 0);
    gp->stack_hi = NULL;
}

void stack_flush(struct p *pp)
{
    for (int class = 0; class < STACK_CLASSES; class ++) {
        struct stack_cache *c = &pp->stacks[class];
        if (c->n) {
            pool_give(class, c->slot, c->n);
        }
        if (c->promises) {
            pool_unpromise(class, c->promises);
        }
        c->n = 0;
        c->promises = 0;
    }
}

/* For stacks without a guard, at every switch. */
COLD static _Noreturn void overflowed(struct g *gp)
{
    fatal("stack overflow: goroutine %lu outgrew its stack of %zu bytes; raise .stack_size",
          gp->id, stack_class_size(gp->class));
}

void stack_check(struct g *gp)
{
    char *lo = stack_lo(gp), *here = __builtin_frame_address(0);
    if (unlikely(here < lo || *(uint64_t *)(void *)lo != STACK_CANARY)) {
        overflowed(gp);
    }
}
