/* SPDX-License-Identifier: MIT */
/*
 * The goroutines, for people: who they are, what they wait for, where they stand and where they come from.
 *
 * pirn_dump stops the world for the time that it takes to look at them. A fatal report does not: who reports
 * may hold any lock. It reads every G as it is at that moment; the memory of a G stays, and stacks are read
 * within their bounds, so the worst is an entry that is out of date.
 */
#include <unistd.h>

#include "debug/cycles.h"
#include "debug/dump.h"
#include "debug/groups.h"

#define STOP_WITHIN ((int64_t)200 * 1000 * 1000)

static struct groups last;   /* of the report with which the process ends */
static struct groups others; /* of those with which it does not; whose they are: */
static AT(const struct g *) others_of;
static const struct g outside; /* a thread without goroutines */

static void add(struct g *gp, void *arg)
{
    struct groups *s = arg;
    if (gp != s->first) {
        groups_add(s, gp);
    }
}

static void collect(struct groups *s, const struct g *first)
{
    groups_begin(s, first);
    if (first) {
        groups_add(s, (struct g *)(uintptr_t)first);
    }
    g_for_each(add, s);
}

/* --- at the end ------------------------------------------------------------------------------------ */

static void dump_last(void *arg)
{
    struct groups *s = arg;
    struct m *mp = getm();
    collect(s, mp ? mp->curg : NULL);
    groups_print(s, s->fd);
    cycles_print(s->fd);
}

void dump_begin_at(const void *sp)
{
    last.from = sp;
}

static bool on_goroutine(const struct m *mp)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return mp && mp->curg && here >= low_end(mp->curg) && here < (uintptr_t)mp->curg->stack_hi;
}

/* The one that fails comes first. Its stack may be a dense one, or nearly full: there is room on g0. In a
 * handler, and on g0, there is room here. A sanitizer knows nothing of such a call. */
void dump_all(int fd)
{
    struct m *mp = getm();
    last.fd = fd;
    last.here.known = 0;
    if (mp && mp->curg) {
        unwind_here(&last.here);
    }
    if (on_goroutine(mp) && !TOOL_BIG_FRAMES) {
        arch_call_on(mp->g0.sp, dump_last, &last);
    } else {
        dump_last(&last);
    }
    __asm__ volatile(""); /* this frame is where the trace begins */
}

void dump_thread(int fd, const void *context)
{
    static void *pcs[BACKTRACE_MOST]; /* the reporter's alone */
    struct unwind u = {.known = 0};
    int n;
    symbols_set_path(); /* there may be no runtime */
    if (context) {
        n = backtrace_of_context(NULL, context, pcs, BACKTRACE_MOST);
    } else {
        unwind_here(&u);
        n = backtrace_from(&u, last.from, pcs, BACKTRACE_MOST);
    }
    say_fd(fd, "\nthread %d, outside goroutines:\n", (int)gettid());
    backtrace_print(fd, pcs, n, context);
}

/* --- now and then ---------------------------------------------------------------------------------- */

static struct groups *take_others(const struct g *gp)
{
    const struct g *none = NULL;
    while (!at_cas(&others_of, &none, gp ? gp : &outside, ACQUIRE, RELAXED)) {
        none = NULL;
        pirn_yield();
    }
    return &others;
}

static void give_others(void)
{
    at_store(&others_of, NULL, RELEASE);
}

/* It was dropped at one of the entries in between. */
void dump_forget(const struct g *gp)
{
    at_cas(&others_of, &gp, NULL, RELAXED, RELAXED);
}

static void dump_now(int fd)
{
    struct m *mp = getm();
    const struct g *gp = mp ? mp->curg : NULL;
    struct groups *s = take_others(gp);
    s->here.known = 0;
    bool stopped = world_stop(now_ns() + STOP_WITHIN);
    collect(s, gp);
    if (stopped) {
        world_start();
    }
    groups_print(s, fd);
    cycles_print(fd);
    give_others();
}

EXPORT int pirn_dump(int fd)
{
    struct m *mp = stop_point();
    if (mp && mp->curg->class < STACK_DENSE) {
        return -ENOTSUP; /* a dense stack is too small for this */
    }
    if (mp) {
        dump_now(fd);
        return 0;
    }
    if (!foreign_enter()) {
        return -EAGAIN; /* no runtime runs */
    }
    dump_now(fd);
    foreign_leave();
    return 0;
}

EXPORT int pirn_backtrace(void **pcs, int max)
{
    not_forked();
    struct unwind u = {.known = 0};
    unwind_here(&u);
    int n = backtrace_innermost(&u, pcs, max); /* without this frame */
    __asm__ volatile("");
    return n;
}

EXPORT void pirn_backtrace_print(int fd, void *const *pcs, int n)
{
    not_forked();
    backtrace_print(fd, pcs, n, false);
}

/* PIRN_DEBUG=leaks: at the end of the runtime, when no thread is left. */
void dump_left(void)
{
    collect(&last, NULL);
    if (last.total) {
        say_fd(STDERR_FILENO,
               last.total == 1 ? "pirn: %u goroutine is left as the runtime ends:\n"
                               : "pirn: %u goroutines are left as the runtime ends:\n",
               last.total);
        groups_print(&last, STDERR_FILENO);
        say_fd(STDERR_FILENO, "\n");
    }
}

/* PIRN_DEBUG=locks: it has waited, and goes on on another thread than that which has the lock. */
LOOKS void dump_locks(const struct g *gp)
{
    const char *kind;
    const void *site;
    bool names = symbols_begin();
    while (sched.locks_held_by(gp->id, &kind, &site)) {
        say_fd(STDERR_FILENO, "pirn: goroutine %lu", gp->id);
        if (gp->site && !(gp->flags & G_SITE_PC)) {
            say_fd(STDERR_FILENO, " %s", gp->site);
        }
        say_fd(STDERR_FILENO, " has left its thread (%s) with a %s, which it locked at ",
               gp->reason == WAIT_NONE ? "yield" : wait_reason_names[gp->reason % WAIT_REASONS],
               kind);
        backtrace_print_place(STDERR_FILENO, site);
        say_fd(STDERR_FILENO, "\n");
    }
    if (names) {
        symbols_end();
    }
}
