/* SPDX-License-Identifier: MIT */
/*
 * From a frame to its caller: unwind.c has the design.
 */
#ifndef PIRN_DEBUG_UNWIND_H
#define PIRN_DEBUG_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers by their DWARF numbers. */
#if defined(__x86_64__)
#define UNWIND_REGS 17
#define UNWIND_FP 6
#define UNWIND_SP 7
#define UNWIND_PC 16 /* the column of the return address */
#else
#define UNWIND_REGS 33
#define UNWIND_FP 29
#define UNWIND_LR 30
#define UNWIND_SP 31
#define UNWIND_PC 32
#endif

/* Of functions that read Gs and stacks while others run there, and where a tool has forbidden it. */
#ifdef __clang__
#define LOOKS __attribute__((no_sanitize("address", "thread", "memory")))
#else
#define LOOKS __attribute__((no_sanitize("address", "thread")))
#endif

struct unwind {
    uint64_t r[UNWIND_REGS];
    uint64_t known; /* a bit for each register */
    uintptr_t lo,
        hi;     /* the stack: nothing else is read. Both 0: the kernel is asked at each read */
    bool exact; /* the pc is that of an instruction, not of the one behind a call */
};

/* What a pc belongs to. */
struct module {
    const char *name; /* path; "" is the program itself */
    uintptr_t base;   /* what is to be taken off an address to have that of the file */
    uintptr_t start, end;
    const unsigned char *eh_frame_hdr; /* NULL: none */
};
bool module_of(uintptr_t pc, struct module *out);

/* To the caller. False: there is none, or no way to tell. */
bool unwind_step(struct unwind *u);
/* Of a signal handler's third argument. */
void unwind_context(struct unwind *u, const void *ucontext);
/* The same on another thread, which may go on and end meanwhile. False: it is no longer there. */
bool unwind_context_of_other(struct unwind *u, const void *ucontext);
/* Of a goroutine that has left its stack by arch_switch; the bounds must be set. */
bool unwind_parked(struct unwind *u, const void *sp);
/* A word of any memory of the process, as the kernel sees it; false: there is none. */
bool peek(uintptr_t addr, uint64_t *out);
bool peek_bytes(uintptr_t addr, void *out, size_t n);

static inline bool unwind_knows(const struct unwind *u, unsigned reg)
{
    return u->known >> reg & 1;
}

static inline void unwind_set(struct unwind *u, unsigned reg, uint64_t value)
{
    u->r[reg] = value;
    u->known |= (uint64_t)1 << reg;
}

/* The registers as they are here. The function that calls this must be there while they are used. */
static inline __attribute__((always_inline)) void unwind_here(struct unwind *u)
{
#if defined(__x86_64__)
    __asm__ volatile("movq %%rbx, 24(%0)\n\t"
                     "movq %%rbp, 48(%0)\n\t"
                     "movq %%rsp, 56(%0)\n\t"
                     "movq %%r12, 96(%0)\n\t"
                     "movq %%r13, 104(%0)\n\t"
                     "movq %%r14, 112(%0)\n\t"
                     "movq %%r15, 120(%0)\n\t"
                     "leaq 0(%%rip), %%rax\n\t"
                     "movq %%rax, 128(%0)"
                     :
                     : "r"(u->r)
                     : "rax", "memory");
    u->known = 0xf000 | 1u << 3 | 1u << UNWIND_FP | 1u << UNWIND_SP | 1u << UNWIND_PC;
#else
    __asm__ volatile("stp x19, x20, [%0, #152]\n\t"
                     "stp x21, x22, [%0, #168]\n\t"
                     "stp x23, x24, [%0, #184]\n\t"
                     "stp x25, x26, [%0, #200]\n\t"
                     "stp x27, x28, [%0, #216]\n\t"
                     "stp x29, x30, [%0, #232]\n\t"
                     "mov x9, sp\n\t"
                     "adr x10, .\n\t"
                     "stp x9, x10, [%0, #248]"
                     :
                     : "r"(u->r)
                     : "x9", "x10", "memory");
    u->known = (uint64_t)0x3fff << 19;
#endif
    u->exact = true;
}

#endif
