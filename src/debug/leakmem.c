/* SPDX-License-Identifier: MIT */
/*
 * All memory of the process that may hold an address, as debug/leaks.c wants it: what /proc/self/maps says
 * can be written to and is private, less the stacks of goroutines, Gs, Ms and Ps, the stacks of Ms below the
 * point where they left them for a goroutine, the arguments of pirn_go on their way, and the memory that this
 * works with. Read by process_vm_readv, so that pages which can't be read (guards, the end of a
 * file) are an error and no fault; pages of large mappings which nobody has touched are left out.
 */
#include "debug/leakmem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "debug/backtrace.h"

#define BUFFER ((size_t)64 << 10)
#define PAGE ((size_t)4096)
#define LARGE ((size_t)16 << 20)
#define TOO_LARGE ((size_t)1 << (TOOL_TSAN ? 36 : 40)) /* the shadow of a sanitizer */
#define RED_ZONE 128

extern __thread struct goargs go_args_tls; /* sched/spawn.c */

void *leakmem_from;

/* --- working memory ------------------------------------------------------------------------------- */

void *leakmem_take(struct leakmem *m, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(m->end - m->at) < size) {
        return NULL;
    }
    void *p = m->at;
    m->at += size;
    return p;
}

static void swap(char *a, char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char c = a[i];
        a[i] = b[i];
        b[i] = c;
    }
}

static void sift(char *array, uint32_t at, uint32_t n, size_t size,
                 bool (*before)(const void *, const void *))
{
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(array + child * size, array + (child + 1) * size)) {
            child++;
        }
        if (!before(array + at * size, array + child * size)) {
            return;
        }
        swap(array + at * size, array + child * size, size);
    }
}

/* A heap sort: qsort takes memory. */
void leakmem_sort(void *array, uint32_t n, size_t size, bool (*before)(const void *, const void *))
{
    char *a = array;
    for (uint32_t i = n / 2; i-- > 0;) {
        sift(a, i, n, size, before);
    }
    for (uint32_t i = n; i-- > 1;) {
        swap(a, a + i * size, size);
        sift(a, 0, i, size, before);
    }
}

/* --- stacks --------------------------------------------------------------------------------------- */

LOOKS static void add_stack(struct g *gp, void *arg)
{
    struct leakmem *m = arg;
    if (gp->stack_hi && m->nstacks < m->stacks_room) {
        m->stacks[m->nstacks++] = (struct owned){(uintptr_t)gp->stack_hi, gp};
    }
}

static bool owned_before(const void *a, const void *b)
{
    return ((const struct owned *)a)->hi < ((const struct owned *)b)->hi;
}

LOOKS struct g *leakmem_goroutine_at(const struct leakmem *m, const void *addr)
{
    uint32_t lo = 0, hi = m->nstacks;
    while (lo < hi) { /* the first that ends behind */
        uint32_t mid = (lo + hi) / 2;
        if (m->stacks[mid].hi <= (uintptr_t)addr) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == m->nstacks || (uintptr_t)addr < low_end(m->stacks[lo].g)) {
        return NULL;
    }
    return m->stacks[lo].g;
}

static uintptr_t interrupted_at(const void *context)
{
    struct unwind u = {.known = 0};
    unwind_context(&u, context);
    return u.r[UNWIND_SP] - RED_ZONE;
}

LOOKS void *leakmem_used(const struct g *gp)
{
    uint32_t status = at_load(&gp->status, RELAXED);
    uintptr_t lo = low_end(gp), hi = (uintptr_t)gp->stack_hi, at = (uintptr_t)gp->sp;
    struct m *mp = gp->flags & G_BOUND ? gp->run.m : NULL;
    struct m *here = getm();
    if (here && here->curg == gp) {
        at = (uintptr_t)leakmem_from;
    } else if (mp && mp->curg == gp) {
        const void *context = at_load(&mp->context, RELAXED);
        at = context ? interrupted_at(context) : (uintptr_t)at_load(&mp->stands, RELAXED);
    } else if (status == G_RUNNING) {
        at = 0;
    }
    at &= ~(uintptr_t)(sizeof(void *) - 1);
    return (void *)(at >= lo && at < hi ? at : lo);
}

/* --- what is left out ------------------------------------------------------------------------------- */

static void leave_out(void *at, size_t size, void *arg)
{
    struct leakmem *m = arg;
    if (m->nwithout < m->without_room) {
        m->without[m->nwithout++] = (struct range){(uintptr_t)at, (uintptr_t)at + size};
    }
}

static bool range_before(const void *a, const void *b)
{
    return ((const struct range *)a)->lo < ((const struct range *)b)->lo;
}

/* For chunks and slabs: as many as there are. */
static void count(void *at, size_t size, void *arg)
{
    (void)at, (void)size;
    ++*(uint32_t *)arg;
}

static uint32_t count_ranges(void)
{
    uint32_t n = 64 + at_load(&sched.nallp, RELAXED);
    stack_for_each_chunk(count, &n);
    g_for_each_slab(count, &n);
    for (struct m *mp = m_first(); mp; mp = m_after(mp)) {
        n += 4;
    }
    return n;
}

static void leave_out_own(struct leakmem *m)
{
    ptrdiff_t args = (char *)&go_args_tls - arch_thread_pointer();
    stack_for_each_chunk(leave_out, m);
    g_for_each_slab(leave_out, m);
    leave_out(m->base, m->size, m);
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        leave_out(at_load(&sched.allp[i], RELAXED), sizeof(struct p), m);
    }
    lock(&sched.lock); /* a thread may just be beginning, or ending */
    for (struct m *mp = m_first(); mp; mp = m_after(mp)) {
        leave_out(mp, sizeof *mp, m);
        if (!mp->thread_pointer || mp->ended) {
            continue;
        }
        leave_out(mp->thread_pointer + args, sizeof go_args_tls, m);
        if (mp->altstack) { /* old registers; the present ones are looked at one by one */
            leave_out(mp->altstack, ALTSTACK, m);
        }
        if (!mp->visits && mp->stack_lo && (char *)mp->g0.sp > (char *)mp->stack_lo) {
            leave_out(mp->stack_lo, (size_t)((char *)mp->g0.sp - (char *)mp->stack_lo), m);
        }
    }
    unlock(&sched.lock);
    leakmem_sort(m->without, m->nwithout, sizeof *m->without, range_before);
}

bool leakmem_begin(struct leakmem *m, size_t more, void *own, size_t own_size)
{
    uint32_t goroutines = g_count() + 1024, ranges = count_ranges();
    *m = (struct leakmem){.stacks_room = goroutines, .without_room = ranges};
    m->size =
        more + goroutines * sizeof *m->stacks + ranges * sizeof *m->without + BUFFER + 16 * PAGE;
    m->base = mem_reserve(m->size);
    if (!m->base) {
        return false;
    }
    m->at = m->base;
    m->end = m->at + m->size;
    m->buffer = leakmem_take(m, BUFFER);
    m->stacks = leakmem_take(m, goroutines * sizeof *m->stacks);
    m->without = leakmem_take(m, ranges * sizeof *m->without);
    g_for_each(add_stack, m);
    leakmem_sort(m->stacks, m->nstacks, sizeof *m->stacks, owned_before);
    leave_out(own, own_size, m);
    leave_out_own(m);
    return true;
}

void leakmem_end(struct leakmem *m)
{
    mem_unmap(m->base, m->size);
    m->base = NULL;
}

/* --- the search --------------------------------------------------------------------------------------- */

static void search_pages(struct leakmem *m, uintptr_t lo, uintptr_t hi, words_fn *fn)
{
    while (lo < hi) {
        size_t size = (size_t)min_u64(hi - lo, BUFFER);
        struct iovec to = {m->buffer, size}, from = {(void *)lo, size};
        ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        if (got > 0) {
            fn(m->buffer, (size_t)got / sizeof(uintptr_t), lo);
            lo += (size_t)got;
        } else {
            lo = (lo / PAGE + 1) * PAGE;
        }
    }
}

/* Those that are in memory or swapped out. */
static void search_present(struct leakmem *m, int pagemap, uintptr_t lo, uintptr_t hi, words_fn *fn)
{
    uint64_t entries[512];
    while (lo < hi) {
        uintptr_t page = lo / PAGE;
        size_t n = (size_t)min_u64((hi - 1) / PAGE - page + 1, ARRAY_LEN(entries));
        ssize_t got = pread(pagemap, entries, n * sizeof *entries, (off_t)(page * sizeof *entries));
        if (got < (ssize_t)sizeof *entries) {
            search_pages(m, lo, hi, fn);
            return;
        }
        n = (size_t)got / sizeof *entries;
        for (size_t i = 0; i < n && lo < hi; i++) {
            uintptr_t end = min_u64((page + i + 1) * PAGE, hi);
            if (entries[i] >> 62) {
                search_pages(m, lo, end, fn);
            }
            lo = end;
        }
    }
}

static void search_range(struct leakmem *m, int pagemap, uintptr_t lo, uintptr_t hi, words_fn *fn)
{
    lo = (lo + sizeof(uintptr_t) - 1) & ~(uintptr_t)(sizeof(uintptr_t) - 1);
    if (lo >= hi) {
        return;
    }
    if (pagemap >= 0 && hi - lo > LARGE) {
        search_present(m, pagemap, lo, hi, fn);
    } else {
        search_pages(m, lo, hi, fn);
    }
}

/* A mapping, less what is left out. */
static void search_mapping(struct leakmem *m, int pagemap, uintptr_t lo, uintptr_t hi, words_fn *fn)
{
    if (hi - lo > TOO_LARGE) {
        return;
    }
    for (uint32_t i = 0; i < m->nwithout && lo < hi; i++) {
        const struct range *r = &m->without[i];
        if (r->hi <= lo || r->lo >= hi) {
            continue;
        }
        if (r->lo > lo) {
            search_range(m, pagemap, lo, r->lo, fn);
        }
        lo = r->hi;
    }
    if (lo < hi) {
        search_range(m, pagemap, lo, hi, fn);
    }
}

/* "lo-hi perms ..." */
static void search_line(struct leakmem *m, int pagemap, const char *line, words_fn *fn)
{
    char *end;
    uintptr_t lo = strtoull(line, &end, 16);
    if (*end != '-') {
        return;
    }
    uintptr_t hi = strtoull(end + 1, &end, 16);
    if (!strncmp(end, " rw", 3) && end[4] == 'p') {
        search_mapping(m, pagemap, lo, hi, fn);
    }
}

/* Where it is denied nothing would be found, and everybody be leaked. */
static bool can_read(void)
{
    uint64_t probe = 1, copy = 0;
    struct iovec to = {&copy, sizeof copy}, from = {&probe, sizeof probe};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof copy;
}

bool leakmem_search(struct leakmem *m, words_fn *fn)
{
    if (!can_read()) {
        return false;
    }
    static char text[4096]; /* one search at a time */
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got = -1;
    while (maps >= 0 && (got = read(maps, text + n, sizeof text - 1 - n)) > 0) {
        char *line = text, *end;
        n += (size_t)got;
        text[n] = '\0';
        for (; (end = strchr(line, '\n')); line = end + 1) {
            search_line(m, pagemap, line, fn);
        }
        n -= (size_t)(line - text);
        n = n == sizeof text - 1 ? 0
                                 : n; /* a path that is longer than this: its rest means nothing */
        memmove(text, line, n);
    }
    if (maps >= 0) {
        close(maps);
    }
    if (pagemap >= 0) {
        close(pagemap);
    }
    return maps >= 0 && got == 0;
}
