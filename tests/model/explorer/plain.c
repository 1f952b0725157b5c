/* SPDX-License-Identifier: MIT */
/*
 * Plain memory: data races, use after free, double free, leaks.
 *
 * The compiler calls a hook before every plain load and store of the modelled files (it takes them
 * for ThreadSanitizer's). Of each byte the last access of each kind by each thread is kept with the
 * thread's time; two that conflict must be ordered by happens-before. That does not depend on the
 * order in which this execution ran them, so plain accesses need not be points of the search.
 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "explorer/explorer.h"

/* --- races ------------------------------------------------------------------------------------- */

enum access { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE };
#define KINDS 4
static const char *const access_name[KINDS] = {"read", "write", "atomic access", "atomic write"};

#define BYTES 8
typedef uint16_t times __attribute__((vector_size(2 * BYTES))); /* of each byte */

#define CELLS 16384
static struct cell { /* eight bytes of memory */
    const volatile char *addr;
    uint32_t stamp;
    uint8_t loc[BYTES]; /* of each byte the atomic variable to which it belongs, plus 1 */
    uint8_t by[KINDS];  /* threads: whose times below are set */
    times last[KINDS][NT];
    void *pc[KINDS][NT];
} cells[CELLS];
static uint16_t used[CELLS]; /* those of this execution */
static int nused;

static struct cell *cell_of(const volatile char *addr)
{
    unsigned h = (unsigned)(((uintptr_t)addr * 0x9e3779b97f4a7c15u) >> 50);
    for (unsigned tries = 0; tries < 64; tries++, h++) {
        struct cell *c = &cells[h % CELLS];
        if (c->stamp != ex.stamp) {
            used[nused++] = (uint16_t)(h % CELLS);
            c->addr = addr;
            c->stamp = ex.stamp;
            memset(c->loc, 0, sizeof c->loc);
            memset(c->by, 0, sizeof c->by);
            return c;
        }
        if (c->addr == addr) {
            return c;
        }
    }
    model_fail("too many plain variables");
}

static bool any(times t)
{
    uint64_t half[2];
    memcpy(half, &t, sizeof half);
    return half[0] | half[1];
}

static const char *place(void *pc, char *buf)
{
    sprintf(buf, "%s", pc ? place_of(pc) : "an atomic operation");
    return buf;
}

/* These bytes of the cell, all bits set: has somebody accessed them so, and we don't know of it? */
static inline void check(const struct cell *c, enum access before, times bytes, const char *what,
                         void *pc)
{
    const struct thread *t = &ex.threads[ex.cur];
    for (unsigned by = c->by[before] & ~(1u << ex.cur); by; by &= by - 1) {
        int i = __builtin_ctz(by);
        char here[80], there[80];
        if (unlikely(any((times)(c->last[before][i] > t->cur.clk[i]) & bytes))) {
            model_fail("data race: T%d %s at %s, not ordered after T%d's %s at %s", ex.cur, what,
                       place(pc, here), i, access_name[before], place(c->pc[before][i], there));
        }
    }
}

static void heap_check(const volatile void *addr);

/* Bytes from .. to-1 of a cell. */
static inline void access_cell(struct cell *c, unsigned from, unsigned to, enum access kind,
                               const char *what, void *pc)
{
    static const times index = {0, 1, 2, 3, 4, 5, 6, 7}, none;
    times bytes = (times)(index >= (uint16_t)from) & (times)(index < (uint16_t)to);
    heap_check(c->addr + from);
    check(c, PLAIN_WRITE, bytes, what, pc);
    if (kind == PLAIN_READ || kind == PLAIN_WRITE) {
        check(c, ATOMIC_WRITE, bytes, what, pc);
    }
    if (kind == PLAIN_WRITE || kind == ATOMIC_WRITE) {
        check(c, PLAIN_READ, bytes, what, pc);
    }
    if (kind == PLAIN_WRITE) {
        check(c, ATOMIC_READ, bytes, what, pc);
        for (unsigned i = from; i < to; i++) {
            if (c->loc[i]) {
                ex.locs[c->loc[i] - 1].plainly_written = true;
            }
        }
    }
    times *last = &c->last[kind][ex.cur];
    if (!(c->by[kind] >> ex.cur & 1)) {
        c->by[kind] |= (uint8_t)(1u << ex.cur);
        *last = none;
    }
    *last = (*last & ~bytes) | (ex.threads[ex.cur].cur.clk[ex.cur] & bytes);
    c->pc[kind][ex.cur] = pc;
}

static inline void access_bytes(const volatile void *at, size_t size, enum access kind,
                                const char *what, void *pc)
{
    unsigned from = (unsigned)((uintptr_t)at % BYTES);
    const volatile char *addr = (const volatile char *)at - from;
    for (size_t end = from + size;; end -= BYTES, addr += BYTES, from = 0) {
        access_cell(cell_of(addr), from, end < BYTES ? (unsigned)end : BYTES, kind, what, pc);
        if (end <= BYTES) {
            break;
        }
    }
}

static inline __attribute__((always_inline)) void access_plain(const volatile void *addr,
                                                               size_t size, bool writes, void *pc)
{
    if (ex.cur >= 0 && ex.end == END_RUNNING && !is_thread_local(addr)) {
        access_bytes(addr, size, writes ? PLAIN_WRITE : PLAIN_READ, writes ? "writes" : "reads",
                     pc);
    }
}

/* An atomic variable lies in one cell: it is aligned. */
void plain_check_atomic(struct loc *l, bool writes)
{
    unsigned from = (unsigned)((uintptr_t)l->addr % BYTES);
    access_cell(l->cell, from, from + l->size, writes ? ATOMIC_WRITE : ATOMIC_READ,
                writes ? "writes atomically" : "reads atomically", NULL);
}

void plain_new_loc(struct loc *l)
{
    unsigned from = (unsigned)((uintptr_t)l->addr % BYTES);
    if (from + l->size > BYTES) {
        model_fail("T%d uses an atomic variable that is not aligned", ex.cur);
    }
    l->cell = cell_of((const volatile char *)l->addr - from);
    memset(l->cell->loc + from, (int)(l - ex.locs) + 1, l->size);
}

/* --- the heap ---------------------------------------------------------------------------------- */

#define HEAP (256 * 1024)
#define GRAIN 64
static _Alignas(64) char heap[HEAP];
static uint8_t grain[HEAP / GRAIN]; /* of each: 0 nothing, 1 live, 2 freed, | FIRST */
#define LIVE 1
#define FREED 2
#define FIRST 4
static size_t heap_top;

void plain_begin(void)
{
    memset(grain, 0, heap_top / GRAIN);
    heap_top = 0;
    nused = 0;
}

static void heap_check(const volatile void *addr)
{
    size_t at = (size_t)((const volatile char *)addr - heap);
    if (at >= HEAP) {
        return;
    }
    if (grain[at / GRAIN] & FREED) {
        model_fail("T%d uses %p, which has been freed", ex.cur, (const void *)(uintptr_t)addr);
    }
    if (!(grain[at / GRAIN] & LIVE)) {
        model_fail("T%d uses %p, which was never allocated", ex.cur, (const void *)(uintptr_t)addr);
    }
}

void *model_malloc(size_t size)
{
    size_t grains = size / GRAIN + 1;
    if (heap_top + grains * GRAIN > HEAP) {
        model_fail("the model's heap is full");
    }
    char *p = heap + heap_top;
    memset(grain + heap_top / GRAIN, LIVE, grains);
    grain[heap_top / GRAIN] |= FIRST;
    heap_top += grains * GRAIN;
    memset(p, 0xa5, size);
    return p;
}

void *model_calloc(size_t n, size_t size)
{
    return memset(model_malloc(n * size), 0, n * size);
}

void *model_aligned_alloc(size_t align, size_t size)
{
    if (align > GRAIN) {
        model_fail("the model's heap aligns to %d", GRAIN);
    }
    return model_malloc(size);
}

/* To the end of the heap if need be: what lies behind the old block is only read. */
void *model_realloc(void *p, size_t size)
{
    char *q = model_malloc(size);
    if (p) {
        size_t room = (size_t)(q - (char *)p);
        memcpy(q, p, size < room ? size : room);
        model_free(p);
    }
    return q;
}

void model_free(void *p)
{
    void *pc = __builtin_return_address(0);
    size_t at = (size_t)((char *)p - heap) / GRAIN;
    if (!p) {
        return;
    }
    if (at >= HEAP / GRAIN || !(grain[at] & FIRST)) {
        model_fail("T%d frees %p, which was not allocated", ex.cur, p);
    }
    if (grain[at] & FREED) {
        model_fail("T%d frees %p for the second time", ex.cur, p);
    }
    char *end = p;
    do {
        grain[at] = (uint8_t)((grain[at] & FIRST) | FREED);
        at++;
        end += GRAIN;
    } while (at < heap_top / GRAIN && grain[at] == LIVE);
    if (ex.cur < 0) {
        return;
    }
    /* Others must have ended their use: as if every byte were written. */
    static const times none;
    for (int i = 0; i < nused; i++) {
        const struct cell *c = &cells[used[i]];
        if (c->addr >= (char *)p && c->addr < end) {
            for (int kind = 0; kind < KINDS; kind++) {
                check(c, (enum access)kind, ~none, "frees", pc);
            }
        }
    }
}

void plain_end(void)
{
    for (size_t i = 0; i < heap_top / GRAIN && !ex.model->leaks; i++) {
        if (grain[i] == (LIVE | FIRST)) {
            model_fail("leak: %p was never freed", (void *)(heap + i * GRAIN));
        }
    }
}

/* --- the compiler's hooks ---------------------------------------------------------------------- */

#define HOOK(name, size, writes)                                                                   \
    void name(void *addr);                                                                         \
    void name(void *addr)                                                                          \
    {                                                                                              \
        access_plain(addr, size, writes, __builtin_return_address(0));                             \
    }
HOOK(__tsan_read1, 1, false)
HOOK(__tsan_read2, 2, false)
HOOK(__tsan_read4, 4, false)
HOOK(__tsan_read8, 8, false)
HOOK(__tsan_read16, 16, false)
HOOK(__tsan_write1, 1, true)
HOOK(__tsan_write2, 2, true)
HOOK(__tsan_write4, 4, true)
HOOK(__tsan_write8, 8, true)
HOOK(__tsan_write16, 16, true)
HOOK(__tsan_unaligned_read2, 2, false)
HOOK(__tsan_unaligned_read4, 4, false)
HOOK(__tsan_unaligned_read8, 8, false)
HOOK(__tsan_unaligned_read16, 16, false)
HOOK(__tsan_unaligned_write2, 2, true)
HOOK(__tsan_unaligned_write4, 4, true)
HOOK(__tsan_unaligned_write8, 8, true)
HOOK(__tsan_unaligned_write16, 16, true)

static void access_range(const void *addr, size_t size, bool writes, void *pc)
{
    if (size) {
        access_plain(addr, size, writes, pc);
    }
}

void __tsan_read_range(void *addr, unsigned long size);
void __tsan_read_range(void *addr, unsigned long size)
{
    access_range(addr, size, false, __builtin_return_address(0));
}
void __tsan_write_range(void *addr, unsigned long size);
void __tsan_write_range(void *addr, unsigned long size)
{
    access_range(addr, size, true, __builtin_return_address(0));
}

/* What the sources call for memset and its kin, which the compiler's pass leaves alone. */
void *model_memset(void *to, int byte, size_t size)
{
    access_range(to, size, true, __builtin_return_address(0));
    return memset(to, byte, size);
}

void *model_memcpy(void *to, const void *from, size_t size)
{
    access_range(from, size, false, __builtin_return_address(0));
    access_range(to, size, true, __builtin_return_address(0));
    return memmove(to, from, size);
}

void __tsan_init(void);
void __tsan_init(void)
{
}
void __tsan_func_entry(void *pc);
void __tsan_func_entry(void *pc)
{
    (void)pc;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}
