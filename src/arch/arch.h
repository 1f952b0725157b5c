/* SPDX-License-Identifier: MIT */
/*
 * What pirn needs of the processor: the switch, the start of a stack, the
 * thread pointer, and the passing of captured arguments. One folder a machine.
 */
#ifndef PIRN_ARCH_ARCH_H
#define PIRN_ARCH_ARCH_H

#include <stddef.h>
#include <stdint.h>

/*
 * Leaves this stack and goes on at `to`: pushes the callee-saved registers,
 * stores sp in *save, loads sp from `to`, pops, returns there. Returns when
 * somebody switches back, perhaps on another thread. FP control words are the
 * thread's, not the goroutine's (loading them doubles the cost of a switch).
 */
void arch_switch(void **save, void *to);

/* The same for goroutines that asked for FP modes of their own: mxcsr and x87 cw, or FPCR. */
uint64_t arch_fp_modes(void);
void arch_set_fp_modes(uint64_t modes);

/*
 * The same for a stack on which nothing has run yet; hi is its top, aligned to 16. Calls g_main()
 * there; that returns when the stack is done with, and gives the sp to go on at, as arch_switch
 * left it. Unwinding ends at g_main's caller.
 */
void arch_start(void **save, void *hi);

/* Calls fn(arg) on the stack that ends at sp, and comes back. */
void arch_call_on(void *sp, void (*fn)(void *), void *arg);

/* Words that arch_switch keeps on the stack. */
#if defined(__x86_64__)
#define ARCH_FRAME_WORDS 7 /* r15 r14 r13 r12 rbx rbp rip */
#define ARCH_FRAME_PC 6
#define ARCH_FRAME_FP 5
#elif defined(__aarch64__)
#define ARCH_FRAME_WORDS 20 /* x19-x28, x29, x30, d8-d15 */
#define ARCH_FRAME_PC 11
#define ARCH_FRAME_FP 10
#else
#error "pirn runs on x86-64 and aarch64"
#endif

/* Registers that a signal's context has, and that may hold an address. */
#if defined(__x86_64__)
#define ARCH_REGS 16
#else
#define ARCH_REGS 31
#endif

/*
 * The address that thread-local storage is relative to, read anew at each call:
 * compilers keep the address of a __thread variable over a call, which is wrong
 * after a switch that came back on another thread.
 */
static inline char *arch_thread_pointer(void)
{
    char *tp;
#if defined(__x86_64__)
    __asm__ volatile("movq %%fs:0, %0" : "=r"(tp)::"memory");
#else
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(tp)::"memory");
#endif
    return tp;
}

/* The argument registers as pirn_go_args_ found them. */
#define GO_ARGS_MAX 6
struct goargs {
    uint64_t i[GO_ARGS_MAX];
    double f[GO_ARGS_MAX];
};
#define GO_HAS_FLOAT 1u /* in the flags of a captured call */
uint64_t go_call_args(const struct goargs *args, void (*fn)(void), unsigned flags);

#endif
