/* SPDX-License-Identifier: MIT */
/* Call frame information, as compilers leave it in .eh_frame: cfi.c. */
#ifndef PIRN_DEBUG_CFI_H
#define PIRN_DEBUG_CFI_H

#include "debug/unwind.h"

/* Of one function: where its caller's registers are, at any instruction. */
struct cfi {
    const unsigned char *initial, *initial_end; /* instructions of all that share a head */
    const unsigned char *insns, *insns_end;     /* its own */
    uintptr_t begin;                            /* its first address */
    uint64_t code_align;
    int64_t data_align;
    uint32_t ra;      /* the column of the return address */
    uint8_t encoding; /* of addresses */
    bool signal;      /* the kernel calls it, so the pc of its caller is exact */
    bool augmented;
};

bool cfi_find(const struct module *m, uintptr_t pc, struct cfi *out);
bool cfi_step(const struct cfi *cfi, struct unwind *u, uintptr_t pc);

/* unwind.c: a word of the stack */
bool unwind_load(const struct unwind *u, uint64_t addr, uint64_t *out);

/* aarch64: return addresses may be signed, in the bits above an address. */
static inline uint64_t unwind_strip(uint64_t pc)
{
#if defined(__aarch64__)
    return pc & (((uint64_t)1 << 48) - 1);
#else
    return pc;
#endif
}

#endif
