/* SPDX-License-Identifier: MIT */
/* Where goroutines are: backtrace.c. */
#ifndef PIRN_DEBUG_BACKTRACE_H
#define PIRN_DEBUG_BACKTRACE_H

#include "debug/unwind.h"
#include "sched/sched.h"

#define BACKTRACE_MOST 64 /* frames that a report shows */

/* The bounds of its stack, which must be there. */
LOOKS static inline uintptr_t low_end(const struct g *gp)
{
    const struct stack_kind *k = &stack_kinds[gp->class];
    return (uintptr_t)gp->stack_hi - k->size + k->guard;
}

/*
 * All give the number of frames, the innermost first. An entry is what a call returns to; where a frame
 * did not call, its pc + 1: so entry - 1 is inside the instruction in any case.
 */
int backtrace_here(void **pcs, int max);
/* From this goroutine's registers, without the frame that has them. */
int backtrace_innermost(struct unwind *here, void **pcs, int max);
/* For reports: without those with an sp below `from`; of a deep stack both ends. */
int backtrace_from(struct unwind *here, const void *from, void **pcs, int max);
int backtrace_of_g(struct g *gp, void **pcs, int max);
/* Of the third argument of a signal handler, which has interrupted this goroutine; NULL: a thread. Both ends. */
int backtrace_of_context(const struct g *gp, const void *ucontext, void **pcs, int max);

/* There are more frames at its outer end. */
bool backtrace_is_cut(void *const *pcs, int n);

/* Lines for people, each with a tab before it: function and place, or module and address. Frames inside
 * pirn are left out at the beginning, unless all are wanted. */
void backtrace_print(int fd, void *const *pcs, int n, bool all);
/* One of them, without the tab and the end of the line: "file:line", or module and address. */
void backtrace_print_place(int fd, const void *pc);

/* symbols.c: names for addresses, between begin and end, if they can be had. */
struct symbol {
    char *function, *place; /* place may be empty */
};
void symbols_set_path(void); /* as the environment says */
bool symbols_begin(void);    /* false: there are none */
void symbols_end(void);
/* The frames of pc, those that were inlined first; valid until the next call. 0: not known. */
int symbols_of(const void *pc, struct symbol *out, int max);
/* Where pc is in a file; false: nowhere. */
bool symbols_module(const void *pc, const char **path, uintptr_t *offset);

#endif
