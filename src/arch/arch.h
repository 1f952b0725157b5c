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

/* The word of thread-local storage at this offset from there. */
static inline void *arch_thread_word(ptrdiff_t offset)
{
#if defined(__x86_64__)
    void *word;
    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(word) : "r"(offset) : "memory");
    return word;
#else
    return *(void **)(void *)(arch_thread_pointer() + offset);
#endif
}

/*
 * The system call clone, for a child that calls fn(arg) on a stack of its own and never returns from it. Not by
 * libc, where a tool would take it for a fork. The pid, or a negative error.
 */
static inline long arch_clone(unsigned long flags, void *stack, void (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
    long result = 56;
    register long parent __asm__("rdx") = 0;
    register long child __asm__("r10") = 0;
    register long tls __asm__("r8") = 0;
    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xorl %%ebp, %%ebp\n\t"
                     "movq %[arg], %%rdi\n\t"
                     "call *%[fn]\n\t"
                     "ud2\n"
                     "1:"
                     : "+a"(result)
                     : "D"(flags), "S"(stack), "r"(parent), "r"(child),
                       "r"(tls), [fn] "b"(fn), [arg] "r"(arg)
                     : "rcx", "r11", "memory");
    return result;
#else
    register unsigned long x0 __asm__("x0") = flags;
    register void *x1 __asm__("x1") = stack;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register long x8 __asm__("x8") = 220;
    register void (*x19)(void *) __asm__("x19") = fn;
    register void *x20 __asm__("x20") = arg;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x0, x20\n\t"
                     "blr x19\n\t"
                     "brk #1\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8), "r"(x19), "r"(x20)
                     : "memory");
    return (long)x0;
#endif
}

/* The argument registers as pirn_go_args_ found them. */
#define GO_ARGS_MAX 6
struct goargs {
    uint64_t i[GO_ARGS_MAX];
    double f[GO_ARGS_MAX];
};
#define GO_HAS_FLOAT 1u /* in the flags of a captured call */
/* *fp: its frame. Whom it has called returns to go_call_returns. */
uint64_t go_call_args(const struct goargs *args, void (*fn)(void), unsigned flags, void **fp);
extern const char go_call_returns[];

/*
 * A handler lets the code that it has interrupted go on here, with sp below what that uses, aligned to 16:
 * there lie the old sp and pc. Calls fault_panic with its first three argument registers.
 */
extern const char arch_fault_entry[];

#endif
