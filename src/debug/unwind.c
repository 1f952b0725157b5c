/* SPDX-License-Identifier: MIT */
/*
 * Unwinding by the tables that compilers leave in .eh_frame, and by frame pointers where there are none.
 *
 * Code of the program's is mostly compiled without frame pointers; the tables are always there. They are
 * read where the loader has mapped them: no library is needed, nothing is allocated, no lock is taken
 * (_dl_find_object finds the module without one), so that this works in a signal handler, without
 * memory, and while other threads stand still with any lock in their hands.
 *
 * Invariants
 * 1. Memory is read inside the bounds of the stack only, or by asking the kernel, which refuses what is
 *    not there: garbage on a stack makes a trace short or wrong, and nothing else.
 * 2. The stack pointer rises at each step, so it comes to an end.
 *
 * Rejected: libgcc's and libunwind's unwinders, which follow garbage wherever it points to, and begin at
 * the present frame or need /proc and malloc.
 */
#include "debug/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/tool.h"
#include "base/util.h"
#include "debug/cfi.h"

/* --- memory ------------------------------------------------------------------------------------- */

/* Where the call below is denied: what can't be read can't be written to a pipe either. */
static bool peek_by_pipe(uintptr_t addr, void *out, size_t n)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC)) {
        return false;
    }
    bool read_it =
        write(fds[1], (const void *)addr, n) == (ssize_t)n && read(fds[0], out, n) == (ssize_t)n;
    close(fds[0]);
    close(fds[1]);
    return read_it;
}

bool peek_bytes(uintptr_t addr, void *out, size_t n)
{
    struct iovec to = {out, n}, from = {(void *)addr, n};
    ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (got < 0 && (errno == ENOSYS || errno == EPERM)) {
        return peek_by_pipe(addr, out, n);
    }
    return got == (ssize_t)n;
}

bool peek(uintptr_t addr, uint64_t *out)
{
    return peek_bytes(addr, out, sizeof *out);
}

LOOKS bool unwind_load(const struct unwind *u, uint64_t addr, uint64_t *out)
{
    if (addr % sizeof(uint64_t)) {
        return false;
    }
    if (!u->hi) {
        return peek((uintptr_t)addr, out);
    }
    if (addr < u->lo || addr > u->hi - sizeof(uint64_t)) {
        return false;
    }
    *out = *(const volatile uint64_t *)(uintptr_t)addr;
    tool_looks_at(out, sizeof *out);
    return true;
}

/* --- modules ------------------------------------------------------------------------------------- */

#if defined(DLFO_STRUCT_HAS_EH_DBASE) /* glibc 2.35 */
bool module_of(uintptr_t pc, struct module *out)
{
    struct dl_find_object found;
    if (_dl_find_object((void *)pc, &found)) {
        return false;
    }
    tool_looks_at(&found, sizeof found);
    *out = (struct module){.name = found.dlfo_link_map->l_name,
                           .base = found.dlfo_link_map->l_addr,
                           .start = (uintptr_t)found.dlfo_map_start,
                           .end = (uintptr_t)found.dlfo_map_end,
                           .eh_frame_hdr = found.dlfo_eh_frame};
    return true;
}
#else
struct search {
    uintptr_t pc;
    struct module *out;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    struct module m = {.name = info->dlpi_name, .base = info->dlpi_addr};
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && s->pc >= at && s->pc < at + p->p_memsz) {
            m.start = at;
        }
        if (p->p_type == PT_LOAD) {
            m.end = at + p->p_memsz;
        } else if (p->p_type == PT_GNU_EH_FRAME) {
            m.eh_frame_hdr = (const unsigned char *)at;
        }
    }
    if (!m.start) {
        return 0;
    }
    m.start = info->dlpi_addr;
    *s->out = m;
    return 1;
}

/* With the loader's lock: no better way here. */
bool module_of(uintptr_t pc, struct module *out)
{
    struct search s = {pc, out};
    return dl_iterate_phdr(look_at, &s) == 1;
}
#endif

/* --- where to begin -------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define CONTEXT_REGS offsetof(ucontext_t, uc_mcontext.gregs)
#define CONTEXT_WORDS NGREG
static const unsigned char context_word[UNWIND_REGS] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
#else
#define CONTEXT_REGS offsetof(ucontext_t, uc_mcontext.regs) /* sp and pc follow */
#define CONTEXT_WORDS UNWIND_REGS
#endif

static void set_all(struct unwind *u, const uint64_t *words)
{
    for (unsigned i = 0; i < UNWIND_REGS; i++) {
#if defined(__x86_64__)
        unwind_set(u, i, words[context_word[i]]);
#else
        unwind_set(u, i, words[i]);
#endif
    }
    u->exact = true;
}

void unwind_context(struct unwind *u, const void *ucontext)
{
    uint64_t words[CONTEXT_WORDS];
    memcpy(words, (const char *)ucontext + CONTEXT_REGS, sizeof words);
    set_all(u, words);
}

bool unwind_context_of_other(struct unwind *u, const void *ucontext)
{
    uint64_t words[CONTEXT_WORDS];
    bool there = peek_bytes((uintptr_t)ucontext + CONTEXT_REGS, words, sizeof words);
    if (there) {
        set_all(u, words);
    }
    return there;
}

bool unwind_parked(struct unwind *u, const void *sp)
{
#if defined(__x86_64__)
    static const unsigned char reg[] = {15, 14, 13, 12, 3, UNWIND_FP, UNWIND_PC};
    const uint64_t frame = sizeof reg * sizeof(uint64_t);
#else
    static const unsigned char reg[] = {19, 20, 21, 22, 23,        24,
                                        25, 26, 27, 28, UNWIND_FP, UNWIND_LR};
    const uint64_t frame = 20 * sizeof(uint64_t);
#endif
    u->known = 0;
    u->exact = false;
    for (unsigned i = 0; i < sizeof reg; i++) {
        uint64_t value;
        if (!unwind_load(u, (uintptr_t)sp + i * sizeof value, &value)) {
            return false;
        }
        unwind_set(u, reg[i], value);
    }
#if !defined(__x86_64__)
    unwind_set(u, UNWIND_PC, unwind_strip(u->r[UNWIND_LR]));
#endif
    unwind_set(u, UNWIND_SP, (uintptr_t)sp + frame);
    return true;
}

/* --- a step ---------------------------------------------------------------------------------------- */

/* The chain of frame pointers: each points to the one before, with the return address beside it. */
static bool step_by_fp(struct unwind *u)
{
    uint64_t fp = u->r[UNWIND_FP], pc, before;
    if (!unwind_knows(u, UNWIND_FP) || fp < u->r[UNWIND_SP] || !unwind_load(u, fp, &before)
        || !unwind_load(u, fp + sizeof fp, &pc)) {
        return false;
    }
    u->known = 0;
    unwind_set(u, UNWIND_FP, before);
    unwind_set(u, UNWIND_SP, fp + 2 * sizeof fp);
    unwind_set(u, UNWIND_PC, unwind_strip(pc));
    u->exact = false;
    return true;
}

/* A call to where there is no code: nothing has happened since. */
static bool step_from_nowhere(struct unwind *u)
{
    uint64_t pc;
#if defined(__x86_64__)
    if (!unwind_load(u, u->r[UNWIND_SP], &pc)) {
        return false;
    }
    unwind_set(u, UNWIND_SP, u->r[UNWIND_SP] + sizeof pc);
#else
    if (!unwind_knows(u, UNWIND_LR)) {
        return false;
    }
    pc = unwind_strip(u->r[UNWIND_LR]);
#endif
    unwind_set(u, UNWIND_PC, pc);
    u->exact = false;
    return true;
}

bool unwind_step(struct unwind *u)
{
    struct module m;
    struct cfi cfi;
    uint64_t pc = u->r[UNWIND_PC] - !u->exact;
    if (!unwind_knows(u, UNWIND_PC) || !unwind_knows(u, UNWIND_SP)) {
        return false;
    }
    bool known = module_of((uintptr_t)pc, &m);
    if (known && cfi_find(&m, (uintptr_t)pc, &cfi)) {
        return cfi_step(&cfi, u, (uintptr_t)pc) && u->r[UNWIND_PC];
    }
    bool stepped = !known && u->exact ? step_from_nowhere(u) : step_by_fp(u);
    return stepped && u->r[UNWIND_PC];
}
