/* SPDX-License-Identifier: MIT */
/*
 * The stack pools: address space cut into slots.
 *
 * A chunk is one reservation of up to 512 slots (1024 dense ones), touched by nobody until a slot
 * is used: the kernel supplies pages one by one as the stack grows into them. Two bit maps say
 * which slots are free and which free ones are still warm, that is, have pages. Warm ones are
 * given out first, and from the lowest chunk, so that the highest chunks fall free as a whole.
 *
 * Guards are put below the slots in batches, when the slots are first given out. Where only
 * mprotect is available the kernel's limit of mappings ends it at about 32,000 stacks: from
 * MPROTECT_LIMIT on stacks have a canary instead, said once.
 *
 * Giving back (stack_trim, by sysmon): a page fault costs more than anything else here, so the
 * peak of the last seconds stays warm: `peak` follows `out` up at once and decays by 1/32 each
 * 100 ms. A chunk that is wholly free is replaced by a fresh mapping, which drops its page tables
 * and guards too; single slots in other chunks give back their pages only.
 *
 * Lock: one for each pool. Nothing else is taken while it is held.
 */
#include "sched/stack.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#define MPROTECT_LIMIT 30000
#define WARM_FLOOR 64
#define TRIM_EVERY ((int64_t)100 * 1000 * 1000)
#define TRIM_MOST 512u
#define HUGE_PAGE ((size_t)2 << 20)

static struct pool pools[STACK_CLASSES];
static enum guard_kind guard_kind;
static at_u32 mprotected;

/* --- bit maps ---------------------------------------------------------------------------------- */

static bool bit_get(const uint64_t *map, uint32_t i)
{
    return map[i / 64] >> (i % 64) & 1;
}

static void bit_set(uint64_t *map, uint32_t i)
{
    map[i / 64] |= (uint64_t)1 << (i % 64);
}

static void bit_clear(uint64_t *map, uint32_t i)
{
    map[i / 64] &= ~((uint64_t)1 << (i % 64));
}

/* The lowest set bit, or CHUNK_SLOTS. */
static uint32_t bit_first(const uint64_t *map)
{
    for (uint32_t w = 0; w < CHUNK_WORDS; w++) {
        if (map[w]) {
            return w * 64 + (uint32_t)__builtin_ctzll(map[w]);
        }
    }
    return CHUNK_SLOTS;
}

/* --- chunks ------------------------------------------------------------------------------------ */

static char *slot_base(const struct pool *pool, const struct chunk *c, uint32_t i)
{
    return c->base + (size_t)i * pool->slot_size;
}

/* A signal handler without SA_ONSTACK would run on the 2 KB of a dense stack. */
static bool dense_is_safe(void)
{
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction sa;
        if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN
            && !(sa.sa_flags & SA_ONSTACK)) {
            return false;
        }
    }
    return true;
}

static void *map_dense(size_t size)
{
    /* Huge pages want alignment: map one page more and cut the ends off. */
    char *p = mem_map(size + HUGE_PAGE);
    if (!p) {
        return NULL;
    }
    size_t head = (size_t)(-(uintptr_t)p & (HUGE_PAGE - 1));
    if (head) {
        mem_unmap(p, head);
    }
    mem_unmap(p + head + size, HUGE_PAGE - head);
    mem_huge(p + head, size);
    return p + head;
}

static uint32_t slots_wanted(const struct pool *pool)
{
    if (pool->class < STACK_DENSE) {
        return (uint32_t)(HUGE_PAGE / pool->slot_size);
    }
    uint64_t fit = ((uint64_t)1 << 30) / pool->slot_size;
    return (uint32_t)max_u64(1, min_u64(fit, MEM_BATCH));
}

#define CHUNKS_FIRST 512u /* of pointers, a page */

static bool room_for_chunk_locked(struct pool *pool)
{
    if (pool->nchunks < pool->room) {
        return true;
    }
    /* Mapped, as all here: the heap is not to be used with a lock held. */
    uint32_t room = pool->room ? pool->room * 2 : CHUNKS_FIRST;
    struct chunk **p = mem_map(room * sizeof *p);
    if (!p) {
        return false;
    }
    if (pool->chunks) {
        memcpy(p, pool->chunks, pool->room * sizeof *p);
        mem_unmap(pool->chunks, pool->room * sizeof *p);
    }
    pool->chunks = p;
    pool->room = room;
    return true;
}

static void insert_chunk_locked(struct pool *pool, struct chunk *c)
{
    uint32_t i = pool->nchunks++;
    for (; i > 0 && pool->chunks[i - 1]->base > c->base; i--) {
        pool->chunks[i] = pool->chunks[i - 1];
    }
    pool->chunks[i] = c;
    pool->nfull = (uint32_t)min_u64(pool->nfull, i);
}

/* One more chunk; where address space is short, a smaller one. */
static bool add_chunk_locked(struct pool *pool)
{
    bool dense = pool->class < STACK_DENSE;
    if ((dense && !dense_is_safe()) || !room_for_chunk_locked(pool)) {
        return false;
    }
    struct chunk *c = mem_map(sizeof *c);
    if (!c) {
        return false;
    }
    for (c->nslots = slots_wanted(pool); c->nslots; c->nslots /= 2) {
        size_t size = c->nslots * pool->slot_size;
        c->base = dense ? map_dense(size) : mem_reserve(size);
        if (c->base || dense) {
            break;
        }
    }
    if (!c->base || !c->nslots) {
        mem_unmap(c, sizeof *c);
        return false;
    }
    c->unguarded = dense;
    c->nfree = c->nslots;
    for (uint32_t i = 0; i < c->nslots; i++) {
        bit_set(c->free, i);
    }
    insert_chunk_locked(pool, c);
    pool->total += c->nslots;
    return true;
}

/* Its index; any if addr is in none. There are chunks. */
static uint32_t find_chunk_locked(const struct pool *pool, const char *addr)
{
    uint32_t lo = 0, hi = pool->nchunks; /* the last chunk with base <= addr */
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (pool->chunks[mid]->base <= addr) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static bool chunk_has(const struct pool *pool, const struct chunk *c, const char *addr)
{
    return c && (size_t)(addr - c->base) < c->nslots * pool->slot_size;
}

/* Is addr on a stack of ours? */
bool stack_contains(const void *addr)
{
    bool found = false;
    for (int class = 0; class < STACK_CLASSES && !found; class ++) {
        struct pool *pool = &pools[class];
        lock(&pool->lock);
        if (pool->nchunks) {
            found = chunk_has(pool, pool->chunks[find_chunk_locked(pool, addr)], addr);
        }
        unlock(&pool->lock);
    }
    return found;
}

/* What lies at addr? Without the locks, for a thread that is about to end the process, and may hold any: if
 * chunks come and go meanwhile, the answer may be wrong. */
__attribute__((no_sanitize("thread"))) enum stack_place stack_place(const void *addr)
{
    for (int class = 0; class < STACK_CLASSES; class ++) {
        struct pool *pool = &pools[class];
        const struct chunk *c = pool->nchunks ? pool->chunks[find_chunk_locked(pool, addr)] : NULL;
        if (chunk_has(pool, c, addr)) {
            size_t at = (size_t)((const char *)addr - c->base);
            if (at % pool->slot_size < stack_kinds[class].guard) {
                return STACK_GUARD;
            }
            return bit_get(c->free, (uint32_t)(at / pool->slot_size)) ? STACK_FREE : STACK_USED;
        }
    }
    return STACK_NONE;
}

/* All memory that stacks are cut from. */
void stack_for_each_chunk(range_fn *fn, void *arg)
{
    for (int class = 0; class < STACK_CLASSES; class ++) {
        struct pool *pool = &pools[class];
        lock(&pool->lock);
        for (uint32_t i = 0; i < pool->nchunks; i++) {
            fn(pool->chunks[i]->base, pool->chunks[i]->nslots * pool->slot_size, arg);
        }
        unlock(&pool->lock);
    }
}

/* --- guards ------------------------------------------------------------------------------------ */

static void unguard_from_here(struct chunk *c, int err)
{
    static at_u32 said;
    c->unguarded = true;
    if (!at_xchg(&said, 1, RELAXED)) {
        say("pirn: no more guard regions (%s): further stacks have a canary only\n",
            err ? strerrordesc_np(-err) : "the limit of mappings is near");
    }
}

/* Guards for the next slots of the chunk. One that can't have any is unguarded from there on. */
static void guard_more_locked(struct pool *pool, struct chunk *c)
{
    struct mem_range ranges[MEM_BATCH];
    uint32_t n = (uint32_t)min_u64(pool->guard_batch, c->nslots - c->nguarded);
    if (guard_kind == GUARD_MPROTECT && !c->unguarded) {
        if (at_add(&mprotected, n, RELAXED) + n > MPROTECT_LIMIT) {
            at_add(&mprotected, -n, RELAXED);
            unguard_from_here(c, 0);
        } else {
            c->nmprotected += n;
        }
    }
    if (!c->unguarded && guard_kind != GUARD_NONE) {
        for (uint32_t i = 0; i < n; i++) {
            ranges[i].addr = slot_base(pool, c, c->nguarded + i);
            ranges[i].size = stack_kinds[pool->class].guard;
        }
        int err = mem_guard(guard_kind, ranges, (int)n);
        if (err) {
            unguard_from_here(c, err);
        }
    }
    if (guard_kind == GUARD_NONE) {
        c->unguarded = true;
    }
    c->nguarded += n;
    pool->guard_batch = (uint32_t)min_u64((uint64_t)pool->guard_batch * 2, MEM_BATCH);
}

/* --- promises, taking, giving ------------------------------------------------------------------ */

/* Invariant 2 of stack.c, for so many promises. */
static bool make_room_locked(struct pool *pool, uint64_t promises, uint32_t nprocs)
{
    while (pool->total < promises + (uint64_t)nprocs * stack_kinds[pool->class].cache) {
        if (!add_chunk_locked(pool)) {
            return false;
        }
    }
    return true;
}

int pool_promise(int class, uint32_t n)
{
    struct pool *pool = &pools[class];
    lock(&pool->lock);
    bool ok = make_room_locked(pool, pool->promised + n, pool->nprocs);
    if (ok) {
        pool->promised += n;
    }
    unlock(&pool->lock);
    return ok ? 0 : -ENOMEM;
}

/* Before more Ps, with more caches, are made. */
int stack_room_for_procs(uint32_t nprocs)
{
    for (int class = 0; class < STACK_CLASSES; class ++) {
        struct pool *pool = &pools[class];
        lock(&pool->lock);
        bool ok = pool->nchunks == 0 || make_room_locked(pool, pool->promised, nprocs);
        if (ok) { /* else a failure would make every later promise fail too */
            pool->nprocs = (uint32_t)max_u64(pool->nprocs, nprocs);
        }
        unlock(&pool->lock);
        if (!ok) {
            return -ENOMEM;
        }
    }
    return 0;
}

void pool_unpromise(int class, uint32_t n)
{
    struct pool *pool = &pools[class];
    lock(&pool->lock);
    if (pool->promised < n) {
        throw("stack: more promises returned than given");
    }
    pool->promised -= n;
    unlock(&pool->lock);
}

static uint32_t take_from_locked(struct pool *pool, struct chunk *c, bool warm, uintptr_t *slots,
                                 uint32_t n)
{
    uint32_t got = 0;
    while (got < n && (warm ? c->nwarm : c->nfree)) {
        uint32_t i = bit_first(warm ? c->warm : c->free);
        if (i >= c->nguarded) {
            guard_more_locked(pool, c);
        }
        bit_clear(c->free, i);
        c->nfree--;
        if (bit_get(c->warm, i)) {
            bit_clear(c->warm, i);
            c->nwarm--;
            pool->warm--;
        }
        char *hi = slot_base(pool, c, i) + pool->slot_size;
        /* A chunk may lose its guards half way; then its earlier slots count as unguarded too. */
        slots[got++] = (uintptr_t)hi | (c->unguarded ? SLOT_UNGUARDED : 0);
    }
    return got;
}

uint32_t pool_take(int class, uintptr_t *slots, uint32_t n)
{
    struct pool *pool = &pools[class];
    uint32_t got = 0;
    lock(&pool->lock);
    while (pool->nfull < pool->nchunks && !pool->chunks[pool->nfull]->nfree) {
        pool->nfull++;
    }
    for (uint32_t i = pool->nfull; got < n && pool->warm && i < pool->nchunks; i++) {
        got += take_from_locked(pool, pool->chunks[i], true, slots + got, n - got);
    }
    for (uint32_t i = pool->nfull; got < n && i < pool->nchunks; i++) {
        got += take_from_locked(pool, pool->chunks[i], false, slots + got, n - got);
    }
    pool->out += got;
    pool->peak = max_u64(pool->peak, pool->out);
    unlock(&pool->lock);
    return got;
}

void pool_give(int class, const uintptr_t *slots, uint32_t n)
{
    struct pool *pool = &pools[class];
    struct chunk *c = NULL;
    lock(&pool->lock);
    for (uint32_t k = 0; k < n; k++) {
        char *lo = (char *)(slots[k] & ~(uintptr_t)SLOT_UNGUARDED) - pool->slot_size;
        if (!chunk_has(pool, c, lo)) { /* mostly neighbours come together */
            uint32_t at = find_chunk_locked(pool, lo);
            c = pool->chunks[at];
            pool->nfull = (uint32_t)min_u64(pool->nfull, at);
        }
        uint32_t i = (uint32_t)((size_t)(lo - c->base) / pool->slot_size);
        if (i >= c->nslots || bit_get(c->free, i)) {
            throw("stack: a slot was freed twice");
        }
        bit_set(c->free, i);
        bit_set(c->warm, i);
        c->nfree++;
        c->nwarm++;
    }
    pool->warm += n;
    pool->out -= n;
    unlock(&pool->lock);
    sysmon_kick(); /* there is something to trim, some day */
}

/* --- trimming ---------------------------------------------------------------------------------- */

static uint32_t drop_chunk_locked(struct pool *pool, struct chunk *c)
{
    uint32_t n = c->nwarm;
    if (pool->class < STACK_DENSE) { /* no guards to lose: the pages go, the mapping stays huge */
        struct mem_range whole = {c->base, c->nslots * pool->slot_size};
        if (mem_drop(&whole, 1)) {
            return 0;
        }
    } else {
        if (mem_drop_range(c->base, c->nslots * pool->slot_size)) {
            return 0;
        }
        at_add(&mprotected, -c->nmprotected, RELAXED);
        c->nmprotected = 0;
        c->nguarded = 0;
        c->unguarded = false;
    }
    memset(c->warm, 0, sizeof c->warm);
    c->nwarm = 0;
    pool->warm -= n;
    return n;
}

static uint32_t drop_slots_locked(struct pool *pool, struct chunk *c, uint32_t most)
{
    struct mem_range ranges[MEM_BATCH];
    uint32_t n = 0;
    size_t guard = stack_kinds[pool->class].guard;
    for (uint32_t i = 0; i < c->nslots && n < most && n < MEM_BATCH; i++) {
        if (bit_get(c->warm, i)) {
            bit_clear(c->warm, i);
            ranges[n].addr = slot_base(pool, c, i) + guard;
            ranges[n++].size = pool->slot_size - guard;
        }
    }
    if (n) {
        mem_drop(ranges, (int)n);
        c->nwarm -= n;
        pool->warm -= n;
    }
    return n;
}

/* True if slots above the floor remain warm: there will be more to do. */
static bool trim_pool(struct pool *pool, int64_t now)
{
    lock(&pool->lock);
    if (now - pool->trimmed_at >= TRIM_EVERY) {
        pool->trimmed_at = now;
        pool->peak = max_u64(pool->out, pool->peak - pool->peak / 32 - (pool->peak > 0));
    }
    uint64_t keep = max_u64(WARM_FLOOR, pool->peak - pool->out);
    uint32_t dropped = 0;
    for (uint32_t i = pool->nchunks; i-- > 0 && pool->warm > keep && dropped < TRIM_MOST;) {
        struct chunk *c = pool->chunks[i];
        if (c->nfree == c->nslots && c->nwarm && pool->warm - c->nwarm >= keep) {
            dropped += drop_chunk_locked(pool, c);
        } else if (c->nwarm && pool->class >= STACK_DENSE) {
            uint64_t excess = min_u64(pool->warm - keep, TRIM_MOST - dropped);
            dropped += drop_slots_locked(pool, c, (uint32_t)excess);
        }
    }
    /* Dense slots share their pages: only whole chunks can go, so stop when nothing moves. */
    bool moving = pool->class >= STACK_DENSE || dropped || pool->peak > pool->out;
    bool more = pool->warm > WARM_FLOOR && moving;
    unlock(&pool->lock);
    return more;
}

/* By sysmon. Returns when it wants to be called again, or INT64_MAX. */
int64_t stack_trim(int64_t now)
{
    bool more = false;
    for (int class = 0; class < STACK_CLASSES; class ++) {
        more |= trim_pool(&pools[class], now);
    }
    return more ? now + TRIM_EVERY / 5 : INT64_MAX;
}

/* --- life -------------------------------------------------------------------------------------- */

int stack_init(enum guard_kind kind)
{
    guard_kind = kind == GUARD_AUTO ? mem_guard_probe() : kind;
    at_store(&mprotected, 0, RELAXED);
    for (int class = 0; class < STACK_CLASSES; class ++) {
        pools[class] = (struct pool){
            .lock = LOCK_INIT(RANK_STACK),
            .class = class,
            .slot_size = stack_kinds[class].size,
            .guard_batch = 16,
        };
    }
    return 0;
}

/* keep: a thread was left behind on one of the stacks, so all stay mapped. */
void stack_fini(bool keep)
{
    for (int class = 0; class < STACK_CLASSES; class ++) {
        struct pool *pool = &pools[class];
        for (uint32_t i = 0; i < pool->nchunks && !keep; i++) {
            struct chunk *c = pool->chunks[i];
            mem_unmap(c->base, c->nslots * pool->slot_size);
            mem_unmap(c, sizeof *c);
        }
        if (!keep && pool->chunks) {
            mem_unmap(pool->chunks, pool->room * sizeof pool->chunks[0]);
        }
        *pool = (struct pool){0};
    }
}

void stack_metrics(pirn_metrics_v1 *out)
{
    for (int class = 0; class < STACK_CLASSES; class ++) {
        struct pool *pool = &pools[class];
        lock(&pool->lock);
        out->stacks += pool->out;
        out->stacks_warm += pool->warm;
        unlock(&pool->lock);
    }
    out->guard = guard_kind;
}
