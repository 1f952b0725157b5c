/* SPDX-License-Identifier: MIT */
/*
 * Panic, defer, recover: what the files of this folder share.
 *
 * A goroutine, or a thread without one, has a list of marks in its frames, the innermost first (gtop.defers):
 *
 *   MARK_DEFER     a call that pirn_defer has put off, or a call of pirn's own (defer_begin)
 *   MARK_TRY       a pirn_try that is under way
 *   MARK_RUNNING   a deferred call that a panic runs
 *
 * A panic takes the marks off one by one. Deferred calls are called, from below the frames that have
 * panicked; at a MARK_TRY or a MARK_RUNNING the rest is done by who has set it, after a longjmp there. So a
 * deferred call that panics comes to an end where it was called, its panic takes the place of the one
 * before, and the deferred calls that remain are called from there.
 *
 *   defer.c   the list
 *   panic.c   panics, pirn_try, pirn_recover, pirn_exit
 *   unwind.c  the unwinder of C++, where there is one
 *   report.c  the last words
 *   fault.c   SIGSEGV and its like
 *
 * Invariants
 * 1. The list belongs to who runs: nobody else looks at it. It and everything here is used outside the
 *    runtime only (entry.c), where the goroutine may be preempted, but is not moved to another thread.
 * 2. Marks are ordered by their frames, but those that a longjmp, or an exception of C++, has left behind: these
 *    lie below the frames that are still there, and are dropped by who comes by next.
 * 3. mark_ is that of a mark in the list, or was never set, or is 0.
 */
#ifndef PIRN_PANIC_PANIC_H
#define PIRN_PANIC_PANIC_H

#include <setjmp.h>
#include <unwind.h>

#include "sched/sched.h"

enum mark_kind { MARK_DEFER, MARK_DEFER_NAMED, MARK_TRY, MARK_RUNNING };

struct pirn_panic_info {
    struct pirn_panic_info *link; /* raised before, and not yet over */
    const char *message;
    const void *sp; /* of the frame that has raised it */
    bool exits;     /* it is a pirn_exit */
    bool recovered; /* by a deferred call */
    bool fault;     /* frames in between can't be unwound: a signal has interrupted them */
    bool spare;     /* there was no memory for it */
    struct _Unwind_Exception exception;
    char text[];
};

/* A deferred call that a panic runs, in the frame of who runs it. */
struct running {
    struct pirn_defer_ mark; /* first */
    jmp_buf jump;
    struct running *before;
    struct pirn_panic_info *panic;
    void *fp;         /* the frame of its caller */
    const char *name; /* of the function, if that is known */
    bool unwinds;     /* called while frames are unwound: they must not be unwound again */
};

/* Signed return addresses have more in their upper bits. */
#define PC_BITS (((uintptr_t)1 << 48) - 1)

/* defer.c */
struct gtop *top_here(void);
/* Marks below sp, at the deepest that of the caller, were left behind. */
void mark_set(struct gtop *top, struct pirn_defer_ *d, enum mark_kind kind, void *frame,
              const void *sp);
void mark_drop(struct gtop *top, struct pirn_defer_ *d); /* with all that are inside it */
void marks_drop_below(struct gtop *top, const void *sp);
void defer_call(struct pirn_defer_ *d, void **fp);
/* For pirn's own: fn(arg) is called by defer_end, or by a panic. */
void defer_begin(struct pirn_defer_ *d, void (*fn)(void *), void *arg, void *frame);
void defer_end(struct pirn_defer_ *d);
void defer_cancel(struct pirn_defer_ *d);

/* panic.c */
void panic_run(struct gtop *top, struct pirn_defer_ *d, bool unwinds);
void panic_step(struct gtop *top, struct pirn_defer_ *d, bool unwinds);
_Noreturn void panic_at_bottom(struct gtop *top);
_Noreturn void panic_by_fault(const void *sp, const char *format, ...) PRINTF(2, 3);

/* unwind.c */
extern bool unwind_possible;
void unwind_start(void);
void unwind_frames(struct gtop *top, struct pirn_panic_info *p); /* returns if it can't be done */

/* report.c */
_Noreturn void panic_report(struct pirn_panic_info *p);
void report_goroutines(const char *message, const void *context);
void report_keeps_p(void);

#endif
