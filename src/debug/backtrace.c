/* SPDX-License-Identifier: MIT */
/*
 * Backtraces of goroutines, wherever they are.
 *
 *   it runs here                its registers
 *   it has left its stack       what arch_switch has pushed there
 *   it was stopped in its code  the context of the signal handler, on whose thread it is still (m.context);
 *                               or where the thread waits for its P (m.stands)
 *   it runs on another thread   what the kernel knows, if that is in a system call: pc and sp, which the
 *                               tables mostly can do with
 *
 * Nothing is allocated, no lock is taken, and no read leaves the stack (unwind.c): whatever the goroutine does
 * meanwhile, the worst is a trace that is wrong. Names are found by another program (symbols.c); in the
 * plain form, module and address, all of this may be used in a signal handler.
 */
#include "debug/backtrace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "debug/unwind.h"

static bool is_start(uint64_t pc)
{
    /* arch_call_on is the next one in both files. */
    return pc >= (uintptr_t)arch_start && pc < (uintptr_t)arch_call_on;
}

static void *entry(const struct unwind *u)
{
    return (void *)(uintptr_t)(u->r[UNWIND_PC] + u->exact);
}

/* The frame that the runtime calls a goroutine from, and the start of its stack, are left out. */
static int collect(struct unwind *u, void **pcs, int max)
{
    int n = 0;
    do {
        if (is_start(u->r[UNWIND_PC])) {
            return n > 1 ? n - 1 : n;
        }
        pcs[n++] = entry(u);
    } while (n < max && unwind_step(u));
    return n;
}

/* --- both ends ------------------------------------------------------------------------------------- */

#define OUTERMOST 16u /* that are kept of a stack which is deeper than there is room */
#define DEEPEST 200000u

/* In place of the frames that are left out, their number. No address looks like this. */
#define LEFT_OUT ((uint64_t)0xface1e55 << 32)

static void *left_out(uint64_t n)
{
    return (void *)(uintptr_t)(LEFT_OUT | n);
}

static uint32_t how_many_left_out(const void *pc)
{
    uint64_t n = (uintptr_t)pc ^ LEFT_OUT;
    return n <= UINT32_MAX ? (uint32_t)n : 0;
}

bool backtrace_is_cut(void *const *pcs, int n)
{
    for (int i = 0; i < n; i++) {
        if (how_many_left_out(pcs[i])) {
            return false;
        }
    }
    return n == BACKTRACE_MOST;
}

/* If there are more, the outermost in place of some; that of the runtime is not counted. */
static void add_outermost(struct unwind *u, void **pcs, int max)
{
    void *last[OUTERMOST];
    uint32_t n = 0;
    while (n < DEEPEST && unwind_step(u) && !is_start(u->r[UNWIND_PC])) {
        last[n++ % OUTERMOST] = entry(u);
    }
    if (n < 2 || !is_start(u->r[UNWIND_PC])) {
        return;
    }
    uint32_t kept = (uint32_t)min_u64(n, OUTERMOST) - 1;
    void **at = pcs + max - 1 - kept;
    *at++ = left_out(n);
    for (uint32_t i = n - 1 - kept; i < n - 1; i++) {
        *at++ = last[i % OUTERMOST];
    }
}

/* Of who reports: where a recursion came from is at the other end. */
static int collect_ends(struct unwind *u, void **pcs, int max)
{
    int n = collect(u, pcs, max);
    if (n == max && max > 2 * (int)OUTERMOST) {
        add_outermost(u, pcs, max);
    }
    return n;
}

/* Its G may pass to another goroutine meanwhile, with a stack of another size: then there are no bounds, and
 * the kernel is asked at each read. */
LOOKS static void set_bounds(struct unwind *u, const struct g *gp)
{
    const volatile struct g *now = gp;
    uintptr_t hi = (uintptr_t)now->stack_hi;
    const struct stack_kind *k = &stack_kinds[now->class];
    at_fence(ACQUIRE);
    bool same = hi && hi == (uintptr_t)now->stack_hi;
    u->lo = same ? hi - k->size + k->guard : 0;
    u->hi = same ? hi : 0;
}

static bool on_its_stack(const struct unwind *u)
{
    return u->r[UNWIND_SP] >= u->lo && u->r[UNWIND_SP] <= u->hi;
}

/* The frame itself, of a function of ours, is left out, and those below `from`. If that is not found, as its
 * frame is gone, only the first. */
static bool skip(struct unwind *u, const void *from)
{
    if (!unwind_step(u)) {
        return false;
    }
    struct unwind next = *u;
    while (next.r[UNWIND_SP] < (uintptr_t)from) {
        if (!unwind_step(&next)) {
            return true;
        }
    }
    *u = next;
    return true;
}

static void set_bounds_here(struct unwind *u)
{
    struct m *mp = getm();
    u->lo = u->hi = 0;
    if (mp && mp->curg) {
        set_bounds(u, mp->curg);
    }
    if (u->hi && !on_its_stack(u)) { /* in a handler, or on g0 */
        u->lo = u->hi = 0;
    }
}

int backtrace_from(struct unwind *u, const void *from, void **pcs, int max)
{
    set_bounds_here(u);
    return max > 0 && skip(u, from) ? collect_ends(u, pcs, max) : 0;
}

int backtrace_innermost(struct unwind *u, void **pcs, int max)
{
    set_bounds_here(u);
    return max > 0 && skip(u, NULL) ? collect(u, pcs, max) : 0;
}

NOINLINE int backtrace_here(void **pcs, int max)
{
    struct unwind u = {.known = 0};
    unwind_here(&u);
    int n = backtrace_innermost(&u, pcs, max);
    __asm__ volatile(""); /* no tail call */
    return n;
}

static int of_registers(struct unwind *u, const struct g *gp, void **pcs, int max)
{
    if (gp) {
        set_bounds(u, gp);
    }
    if (gp && !on_its_stack(u)) { /* it has overflowed, or is on a stack of its own making */
        u->lo = u->hi = 0;
    }
    return max > 0 ? collect_ends(u, pcs, max) : 0;
}

int backtrace_of_context(const struct g *gp, const void *ucontext, void **pcs, int max)
{
    struct unwind u = {.known = 0};
    unwind_context(&u, ucontext);
    return of_registers(&u, gp, pcs, max);
}

/* --- on other threads ------------------------------------------------------------------------------ */

/* Racy without sched.lock, and the memory of an M stays while the runtime runs. (run.m of one that is bound
 * may be anything, if its G is that of another by now.) */
LOOKS static struct m *thread_of(const struct g *gp)
{
    struct m *mp = m_first();
    while (mp && mp->curg != gp) {
        mp = m_after(mp);
    }
    return mp;
}

/* The last two numbers of "number arguments... sp pc"; the first word is "running" if it is not asleep. */
static bool parse_kernel(char *text, struct unwind *u)
{
    char *pc = strrchr(text, ' ');
    if (!pc) {
        return false;
    }
    *pc++ = '\0';
    char *sp = strrchr(text, ' ');
    unwind_set(u, UNWIND_PC, strtoull(pc, NULL, 16));
    unwind_set(u, UNWIND_SP, sp ? strtoull(sp + 1, NULL, 16) : 0);
    u->exact = true;
    return sp;
}

static bool ask_kernel(int tid, struct unwind *u)
{
    char path[64], text[256];
    fmt(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    if (n <= 0) {
        return false;
    }
    text[n] = '\0';
    return parse_kernel(text, u);
}

LOOKS static int of_thread(const struct g *gp, struct m *mp, void **pcs, int max)
{
    struct unwind u = {.known = 0};
    const void *context = at_load(&mp->context, RELAXED);
    void *stands = at_load(&mp->stands, RELAXED);
    if (context) {
        return unwind_context_of_other(&u, context) ? of_registers(&u, gp, pcs, max) : 0;
    }
    set_bounds(&u, gp);
    if (stands) { /* our own code, with frame pointers */
        unwind_set(&u, UNWIND_FP, (uintptr_t)stands);
        unwind_set(&u, UNWIND_SP, (uintptr_t)stands);
        unwind_set(&u, UNWIND_PC, 1); /* in no module, and not exact */
        return unwind_step(&u) && on_its_stack(&u) ? collect(&u, pcs, max) : 0;
    }
    return ask_kernel(at_load(&mp->tid, RELAXED), &u) && on_its_stack(&u) ? collect(&u, pcs, max)
                                                                          : 0;
}

LOOKS int backtrace_of_g(struct g *gp, void **pcs, int max)
{
    struct m *mp = getm();
    uint32_t status = at_load(&gp->status, ACQUIRE);
    if (!gp->stack_hi || status == G_IDLE || max <= 0) {
        return 0; /* not begun, or over */
    }
    if (mp && mp->curg == gp) {
        const void *context = at_load(&mp->context, RELAXED);
        return context ? backtrace_of_context(gp, context, pcs, max) : backtrace_here(pcs, max);
    }
    mp = status == G_RUNNING || gp->flags & G_BOUND ? thread_of(gp) : NULL;
    if (mp && mp->curg == gp) {
        return of_thread(gp, mp, pcs, max);
    }
    struct unwind u = {.known = 0};
    set_bounds(&u, gp);
    return status != G_RUNNING && unwind_parked(&u, gp->sp) ? collect(&u, pcs, max) : 0;
}

/* --- printing ---------------------------------------------------------------------------------------- */

#define INLINED_MOST 16

static void print_module(int fd, const void *pc)
{
    const char *path;
    uintptr_t offset;
    if (symbols_module(pc, &path, &offset)) {
        say_fd(fd, "%s+0x%lx", path, (unsigned long)offset);
    } else {
        say_fd(fd, "%p, in no module", (const void *)((uintptr_t)pc - 1));
    }
}

/* The program may have functions of the same names. */
static bool is_ours(const struct symbol *s)
{
    static const char *const layers[] = {"arch", "base",  "ctx",   "debug", "io",
                                         "os",   "panic", "sched", "sync",  "time"};
    const char *src = strstr(s->place, "src/");
    for (size_t i = 0; src && i < ARRAY_LEN(layers); i++) {
        size_t n = strlen(layers[i]);
        if (!strncmp(src + 4, layers[i], n) && src[4 + n] == '/') {
            return true;
        }
    }
    return false;
}

static bool is_one_of(const struct symbol *s, const char *const *names)
{
    while (*names && strcmp(s->function, *names) != 0) {
        names++;
    }
    return *names && is_ours(s);
}

/* How a goroutine begins, how it leaves its stack (in place of the call of a lock, which has ended with a jump
 * there), how a report begins: of no interest. */
static const char *const beginnings[] = {"main_goroutine", "call",   "call_captured",
                                         "go_call_args",   "g_main", NULL};
static const char *const ends[] = {
    "switch_to", "switch_away",  "park",       "visit_park", "report",    "fatal",     "misuse",
    "throw",     "preempt_here", "leave_slow", "leave",      "lock_slow", "take_slow", NULL};

/* How a panic calls what was deferred: pirn_panic says enough. */
static const char *const between[] = {
    "go_call_args", "call_captured", "call",        "defer_call",   "panic_run",
    "panic_step",   "go_on",         "raise_panic", "raise_misuse", NULL};

enum whose { THEIRS, SYSTEM_CALL, OURS, PUBLIC };

static enum whose whose_is(const void *pc)
{
    struct symbol s[INLINED_MOST];
    int n = symbols_of(pc, s, INLINED_MOST);
    if (!n) {
        return THEIRS;
    }
    if (!strncmp(s[n - 1].function, "pirn_", 5)) {
        return PUBLIC;
    }
    return strstr(s[n - 1].place, "src/os/") ? SYSTEM_CALL : is_ours(&s[n - 1]) ? OURS : THEIRS;
}

/* A goroutine that waits does so inside pirn: how, is of no interest. The public call is, if nothing of the
 * program's has been called by it: only libc's system calls are further in. */
static int first_of_interest(void *const *pcs, int n)
{
    enum whose inner = SYSTEM_CALL;
    for (int i = 0; i < n && i < 8; i++) {
        enum whose it = whose_is(pcs[i]);
        if (it == PUBLIC) {
            return inner == THEIRS ? 0 : i;
        }
        if (inner == THEIRS && it != SYSTEM_CALL) {
            return 0;
        }
        inner = it;
    }
    return 0;
}

static bool is_boring(const struct symbol *s, bool innermost)
{
    return is_one_of(s, between) || (innermost && is_one_of(s, ends));
}

/* all: nothing is left out. */
static void print_symbols(int fd, const struct symbol *s, int n, bool innermost, bool all)
{
    bool inside = innermost && !strncmp(s[n - 1].function, "pirn_", 5);
    for (int i = inside ? n - 1 : 0; i < n; i++) {
        if (all || !is_boring(&s[i], innermost)) {
            say_fd(fd, s[i].place[0] ? "\t%s at %s\n" : "\t%s\n", s[i].function, s[i].place);
        }
    }
}

static void print_frame(int fd, const void *pc, bool beginning, bool innermost, bool all)
{
    struct symbol s[INLINED_MOST];
    int known = symbols_of(pc, s, INLINED_MOST);
    if (known && beginning && is_one_of(&s[known - 1], beginnings)) {
        return;
    }
    if (known) {
        print_symbols(fd, s, known, innermost, all);
    } else {
        say_fd(fd, "\t");
        print_module(fd, pc);
        say_fd(fd, "\n");
    }
}

/* Of those that follow, how many are the same: a recursion. */
static int repeats(void *const *pcs, int n)
{
    int same = 0;
    while (same + 1 < n && pcs[same + 1] == pcs[0]) {
        same++;
    }
    return same > 1 ? same : 0;
}

void backtrace_print(int fd, void *const *pcs, int n, bool all)
{
    bool here = symbols_begin();
    for (int i = all ? 0 : first_of_interest(pcs, n), first = i; i < n; i++) {
        if (how_many_left_out(pcs[i])) {
            say_fd(fd, "\t... %u frames ...\n", how_many_left_out(pcs[i]));
            continue;
        }
        print_frame(fd, pcs[i], i + 3 >= n, !all && i <= first + 1, all);
        int same = repeats(pcs + i, n - i);
        if (same) {
            say_fd(fd, "\t... the same, %d times more\n", same);
            i += same;
        }
    }
    if (here) {
        symbols_end();
    }
}

void backtrace_print_place(int fd, const void *pc)
{
    struct symbol s[INLINED_MOST];
    int n = symbols_of(pc, s, INLINED_MOST), i = 0;
    while (i < n - 1 && !strncmp(s[i].function, "pirn_", 5)) { /* inline in a header of ours */
        i++;
    }
    if (n && s[i].place[0]) {
        say_fd(fd, "%s", s[i].place);
    } else if (n) {
        say_fd(fd, "%s", s[i].function);
    } else {
        print_module(fd, pc);
    }
}
