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
        if (size <= stack_kinds[class].size) {
            return class;
        }
    }
    return -EINVAL;
}

/*
 * A wide guard needs no stack probes in the caller's code; small slots can't afford it. Caches of
 * big slots are short, because they pin address space (invariant 2).
 */
#define KB(n) ((size_t)(n) << 10)
#define MB(n) ((size_t)(n) << 20)
const struct stack_kind stack_kinds[STACK_CLASSES] = {
    {KB(2), 0, 64},        {KB(4), 0, 64},        {KB(8), 0, 64},        {KB(64), KB(16), 64},
    {KB(128), KB(32), 64}, {KB(256), KB(64), 64}, {KB(512), KB(64), 64}, {MB(1), KB(64), 64},
    {MB(2), KB(64), 32},   {MB(4), KB(64), 16},   {MB(8), KB(64), 8},    {MB(16), KB(64), 4},
    {MB(32), KB(64), 2},   {MB(64), KB(64), 2},   {MB(128), KB(64), 2},  {MB(256), KB(64), 2},
    {MB(512), KB(64), 2},  {MB(1024), KB(64), 2},
};

static int promise(struct p *pp, int class)
{
    if (!pp) {
        return pool_promise(class, 1);
    }
    struct stack_cache *c = &pp->stacks[class];
    if (pool_promise(class, STACK_BATCH) == 0) {
        c->promises += STACK_BATCH - 1;
        return 0;
    }
    return pool_promise(class, 1);
}

struct promise_call {
    struct p *pp;
    int class, result;
};

static void promise_call(void *arg)
{
    struct promise_call *c = arg;
    c->result = promise(c->pp, c->class);
}

/* May map and allocate: more than a dense stack holds, so that then it runs on g0. */
int stack_promise_slow(struct p *pp, int class)
{
    struct m *mp = getm();
    if (!mp || !mp->curg || mp->curg->class >= STACK_DENSE) {
        return promise(pp, class);
    }
    struct promise_call call = {.pp = pp, .class = class};
    arch_call_on(mp->g0.sp, promise_call, &call);
    return call.result;
}

/* More than a P needs for itself, or no P at all. */
void stack_unpromise_slow(struct p *pp, int class)
{
    if (!pp) {
        pool_unpromise(class, 1);
        return;
    }
    pool_unpromise(class, STACK_BATCH);
    pp->stacks[class].promises -= STACK_BATCH;
}

/* Fills the cache of the P. On g0: it may map, guard and so take some stack itself. */
void stack_refill_g0(struct p *pp, int class)
{
    struct stack_cache *c = &pp->stacks[class];
    uint32_t want = (uint32_t)min_u64(STACK_BATCH, stack_kinds[class].cache / 2);
    c->n = pool_take(class, c->slot, want);
    if (c->n == 0) {
        throw("stack: the slot that was promised to a goroutine is missing");
    }
}

/* A full cache: the coldest half goes. */
NOINLINE void stack_cache_full(struct stack_cache *c, int class)
{
    uint32_t half = stack_kinds[class].cache / 2;
    pool_give(class, c->slot, half);
    c->n -= half;
    memmove(c->slot, c->slot + half, c->n * sizeof c->slot[0]);
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
    fatal("stack overflow: goroutine %lu outgrew its stack of %zu bytes; raise .stack_size", gp->id,
          stack_kinds[gp->class].size);
}

void stack_check(struct g *gp)
{
    char *lo = stack_lo(gp), *here = __builtin_frame_address(0);
    if (unlikely(here < lo || *(uint64_t *)(void *)lo != STACK_CANARY)) {
        overflowed(gp);
    }
}

#if PIRN_HAVE_VALGRIND

static void nothing(void *arg)
{
    (void)arg;
}

/* As a constructor, before there are threads and before the main thread's stack is deep. */
__attribute__((constructor(102))) static void stack_tool_init(void)
{
    static _Alignas(16) char room[1024];
    if (tool_on_valgrind) {
        tool_stacks_begin();
        arch_call_on(room + sizeof room, nothing, NULL);
    }
}

#endif
