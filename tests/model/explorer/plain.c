/* SPDX-License-Identifier: MIT */
/*
 * Plain memory: data races, use after free, double free, leaks.
 *
 * The compiler calls a hook before every plain load and store of the modelled files (it takes them
 * for ThreadSanitizer's). For each address the last load and store of each thread are kept with the
 * thread's time; two that conflict must be ordered by happens-before. That does not depend on the
 * order in which this execution ran them, so plain accesses need not be points of the search.
 *
 * Accesses of different sizes that overlap only in part are not compared. A range is taken as so many
 * words, and the atomic variables in it.
 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "explorer/explorer.h"

/* --- races ------------------------------------------------------------------------------------- */

#define SHADOWS 16384
static struct shadow {
    const volatile void *addr;
    uint32_t stamp;
    uint16_t read[NT], write[NT];
    void *read_pc[NT], *write_pc[NT];
} shadows[SHADOWS];
static uint16_t used[SHADOWS]; /* those of this execution */
static int nused;

static struct shadow *shadow_of(const volatile void *addr, bool make)
{
    unsigned h = (unsigned)(((uintptr_t)addr * 0x9e3779b97f4a7c15u) >> 50);
    for (unsigned tries = 0; tries < 64; tries++, h++) {
        struct shadow *s = &shadows[h % SHADOWS];
        if (s->stamp != ex.stamp) {
            if (!make) {
                return NULL;
            }
            used[nused++] = (uint16_t)(h % SHADOWS);
            s->addr = addr;
            s->stamp = ex.stamp;
            memset(s->read, 0, sizeof s->read);
            memset(s->write, 0, sizeof s->write);
            return s;
        }
        if (s->addr == addr) {
            return s;
        }
    }
    model_fail("too many plain variables");
}

/* A thread whose access at one of these times we don't know of, or -1. */
static int unordered(const uint16_t *times)
{
    const struct thread *t = &ex.threads[ex.cur];
    for (int i = 0; i < ex.nthreads; i++) {
        if (i != ex.cur && times[i] > t->cur.clk[i]) {
            return i;
        }
    }
    return -1;
}

static const char *place(void *pc, char *buf)
{
    sprintf(buf, "%s", pc ? place_of(pc) : "an atomic operation");
    return buf;
}

/* other: the thread whose access is not ordered before ours, or -1. */
static void race(int other, const char *what, void *pc, const char *before, void *const *before_pcs)
{
    char here[80], there[80];
    if (other >= 0) {
        model_fail("data race: T%d %s at %s, not ordered after T%d's %s at %s", ex.cur, what,
                   place(pc, here), other, before,
                   place(before_pcs ? before_pcs[other] : NULL, there));
    }
}

static void heap_check(const volatile void *addr);

static inline __attribute__((always_inline)) void access_plain(const volatile void *addr,
                                                               bool writes, void *pc)
{
    if (ex.cur < 0 || ex.end != END_RUNNING || is_thread_local(addr)) {
        return;
    }
    heap_check(addr);
    struct shadow *s = shadow_of(addr, true);
    const char *what = writes ? "writes" : "reads";
    race(unordered(s->write), what, pc, "write", s->write_pc);
    if (writes) {
        race(unordered(s->read), what, pc, "read", s->read_pc);
    }
    (writes ? s->write : s->read)[ex.cur] = ex.threads[ex.cur].cur.clk[ex.cur];
    (writes ? s->write_pc : s->read_pc)[ex.cur] = pc;
    struct loc *l = loc_known(addr);
    if (unlikely(l != NULL)) { /* an atomic variable, used plainly */
        race(unordered(l->atomic_write_clk), what, pc, "atomic write", NULL);
        if (writes) {
            race(unordered(l->atomic_clk), what, pc, "atomic access", NULL);
            l->plainly_written = true;
        }
    }
}

void plain_check_atomic(struct loc *l, bool writes)
{
    struct shadow *s = shadow_of(l->addr, false);
    uint16_t now = ex.threads[ex.cur].cur.clk[ex.cur];
    heap_check(l->addr);
    if (s) {
        race(unordered(s->write), "operates atomically", NULL, "plain write", s->write_pc);
        if (writes) {
            race(unordered(s->read), "writes atomically", NULL, "plain read", s->read_pc);
        }
    }
    l->atomic_clk[ex.cur] = now;
    if (writes) {
        l->atomic_write_clk[ex.cur] = now;
    }
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
    for (int i = 0; i < nused; i++) {
        struct shadow *s = &shadows[used[i]];
        const volatile char *a = s->addr;
        if (a >= (char *)p && a < end) {
            race(unordered(s->write), "frees", pc, "write", s->write_pc);
            race(unordered(s->read), "frees", pc, "read", s->read_pc);
        }
    }
    for (int i = 0; i < ex.nloc; i++) {
        const volatile char *a = ex.locs[i].addr;
        if (a >= (char *)p && a < end) {
            race(unordered(ex.locs[i].atomic_clk), "frees", pc, "atomic access", NULL);
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

#define HOOK(name, writes)                                                                         \
    void name(void *addr);                                                                         \
    void name(void *addr)                                                                          \
    {                                                                                              \
        access_plain(addr, writes, __builtin_return_address(0));                                   \
    }
HOOK(__tsan_read1, false)
HOOK(__tsan_read2, false)
HOOK(__tsan_read4, false)
HOOK(__tsan_read8, false)
HOOK(__tsan_read16, false)
HOOK(__tsan_write1, true)
HOOK(__tsan_write2, true)
HOOK(__tsan_write4, true)
HOOK(__tsan_write8, true)
HOOK(__tsan_write16, true)
HOOK(__tsan_unaligned_read2, false)
HOOK(__tsan_unaligned_read4, false)
HOOK(__tsan_unaligned_read8, false)
HOOK(__tsan_unaligned_write2, true)
HOOK(__tsan_unaligned_write4, true)
HOOK(__tsan_unaligned_write8, true)

static void access_range(char *addr, unsigned long size, bool writes, void *pc)
{
    if (ex.cur < 0) {
        return;
    }
    for (unsigned long i = 0; i < size; i += 8) {
        access_plain(addr + i, writes, pc);
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
    access_range((char *)(uintptr_t)from, size, false, __builtin_return_address(0));
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
