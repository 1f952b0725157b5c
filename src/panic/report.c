/* SPDX-License-Identifier: MIT */
/*
 * The last words of a goroutine that has panicked, or of one that has caused a fault.
 *
 * Nothing is allocated. The frames are looked at on the stack of the goroutine, in whatever room there is;
 * the goroutines are written out on g0, or on a signal stack, so that a full stack is no hindrance. The
 * thread says that it is in the runtime, so it keeps its turn until the process ends.
 */
#include <dlfcn.h>
#include <unistd.h>

#include "panic/panic.h"

#define MOST_FRAMES 100
#define ROOM_TO_UNWIND ((ptrdiff_t)12 << 10)

static struct { /* the reporter's alone */
    void *pcs[MOST_FRAMES];
    int n;
} trace;

/* --- frames ------------------------------------------------------------------------------------------ */

static bool on_stack(const void *fp, const void *below, const void *hi)
{
    return fp > below && fp < hi && (uintptr_t)fp % sizeof(void *) == 0;
}

/* By frame pointers, as far as they go. */
__attribute__((no_sanitize("address", "thread"))) static void
trace_frames(void *pc, void *const *fp, const void *hi)
{
    const void *below = (const char *)fp - 1;
    if (pc) {
        trace.pcs[trace.n++] = pc;
    }
    while (trace.n < MOST_FRAMES && on_stack(fp, below, hi) && fp[1]) {
        trace.pcs[trace.n++] = (void *)((uintptr_t)fp[1] & PC_BITS);
        below = fp;
        fp = fp[0];
    }
}

static void note_trace(void)
{
    struct m *mp = getm();
    struct g *gp = mp ? mp->curg : NULL;
    char *here = __builtin_frame_address(0);
    trace.n = 0;
    if (!gp || here - (char *)stack_lo(gp) > ROOM_TO_UNWIND) {
        trace.n = unwind_trace(trace.pcs, MOST_FRAMES);
    }
    if (trace.n == 0 && gp) {
        trace_frames(NULL, __builtin_frame_address(0), gp->stack_hi);
    }
}

void report_trace(void *pc, void *fp)
{
    struct m *mp = getm();
    trace.n = unwind_trace(trace.pcs, MOST_FRAMES);
    for (int i = 0; i < trace.n; i++) {
        if (trace.pcs[i] == pc) { /* without those of the handler */
            trace.n -= i;
            memmove(trace.pcs, trace.pcs + i, (size_t)trace.n * sizeof trace.pcs[0]);
            return;
        }
    }
    trace.n = 0;
    if (mp->curg) {
        trace_frames(pc, fp, mp->curg->stack_hi);
    }
}

/* A return address is one behind its call. */
static void say_pc(int fd, const char *pc)
{
    Dl_info info = {0};
    if (dladdr(pc - 1, &info) && info.dli_sname) {
        say_fd(fd, "\t%s+0x%lx\n", info.dli_sname, (unsigned long)(pc - (char *)info.dli_saddr));
    } else if (info.dli_fname) {
        say_fd(fd, "\t%s+0x%lx\n", info.dli_fname, (unsigned long)(pc - (char *)info.dli_fbase));
    } else {
        say_fd(fd, "\t%p\n", (const void *)pc);
    }
}

/* Of the goroutine, or thread, that reports; nothing if it is not known. */
void dump_trace(int fd)
{
    for (int i = 0; i < trace.n; i++) {
        say_pc(fd, trace.pcs[i]);
    }
}

/* --- where there is room ----------------------------------------------------------------------------- */

static void dump_on_g0(void *arg)
{
    dump_all((int)(intptr_t)arg);
}

/* All goroutines, on a stack that has room for it. A sanitizer knows nothing of such a call. */
void dump_here(int fd)
{
    struct m *mp = getm();
    if (mp && mp->curg && !TOOL_BIG_FRAMES) {
        arch_call_on(mp->g0.sp, dump_on_g0, (void *)(intptr_t)fd);
    } else {
        dump_all(fd);
    }
}

void report_keeps_p(void)
{
    struct m *mp = getm();
    if (mp) {
        at_store(&mp->where, M_RUNTIME, RELAXED);
    }
}

/* --- panics ------------------------------------------------------------------------------------------ */

static struct pirn_panic_info *oldest_first(struct pirn_panic_info *p)
{
    struct pirn_panic_info *list = NULL;
    for (struct pirn_panic_info *next; p; p = next) {
        next = p->link;
        p->link = list;
        list = p;
    }
    return list;
}

/* One that was recovered and raised again with the same words is one. */
static bool is_repeated(const struct pirn_panic_info *p)
{
    return p->recovered && p->link && !p->link->exits && strcmp(p->message, p->link->message) == 0;
}

static void say_panics(struct pirn_panic_info *newest)
{
    const char *indent = "";
    for (struct pirn_panic_info *p = oldest_first(newest); p; p = p->link) {
        if (p->exits) {
            continue;
        }
        bool again = is_repeated(p);
        say("%spanic: %s%s\n", indent, p->message,
            again          ? " [recovered, repanicked]"
            : p->recovered ? " [recovered]"
                           : "");
        indent = "\t";
        while (again && p->link) {
            p = p->link;
            again = is_repeated(p);
        }
    }
}

void panic_report(struct pirn_panic_info *p)
{
    struct m *mp = getm();
    report_begin();
    report_keeps_p();
    note_trace();
    say_panics(p);
    if (fatal_callback) {
        fatal_callback(p->message);
    }
    if (!mp || !mp->curg) {
        say("\nthread %d, outside goroutines:\n", (int)gettid());
        dump_trace(STDERR_FILENO);
    }
    if (fatal_dump) {
        fatal_dump(STDERR_FILENO);
    }
    _exit(2);
}

/* The process must not end in the midst of a report. */
__attribute__((destructor)) static void at_exit(void)
{
    report_wait();
}
