/* SPDX-License-Identifier: MIT */
/*
 * SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT in a goroutine.
 *
 * The handler runs on the signal stack of the thread, so a goroutine that has used up its own stack is no
 * hindrance. It says what has happened, with the address and what that likely is, and the frames of the
 * goroutine; then the signal's default action ends the process, with a core if the system makes any. With
 * .panic_on_fault it is a panic instead: the handler lets the goroutine go on in arch_fault_entry, below
 * what its code uses of the stack, as if that had called it.
 *
 * Rules
 * - A stack overflow is always fatal, and exits 2 as other fatal errors: nothing could run on that stack.
 * - A fault inside the runtime is always fatal: there may be locks.
 * - One that is not a goroutine's behaves as without pirn: the action from before is carried out. So does one of a
 *   goroutine if that action is a handler of the program's (or a sanitizer's), which may know better, but
 *   for an overflow, or with .panic_on_fault.
 * - A handler that the program installs later takes our place, and may call ours.
 * - What somebody has sent with kill() is no fault. An abort(), by assert() or by a heap that finds itself
 *   damaged, is one: the goroutine sends it to itself.
 * - Who has said abort(), or runs what is no code, does not want to go on: these two are never panics.
 */
#include <errno.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "os/raise.h"
#include "panic/panic.h"

#define RED_ZONE 128
#define NULL_PAGE 4096
#define FRAME_MOST ((uintptr_t)1 << 20) /* a frame larger than the guard may reach beyond it */
#define FRAME_LAST 4096                 /* what is stored before sp goes down */
#define ROOM_FOR_PANIC 2048

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static struct {
    struct sigaction before[ARRAY_LEN(signals)];
    bool installed;
} faults;

/* Called by arch_fault_entry. */
_Noreturn void fault_panic(int sig, uintptr_t addr, int code, const void *sp);

/* --- registers --------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define PC(u) ((u)->uc_mcontext.gregs[REG_RIP])
#define SP(u) ((u)->uc_mcontext.gregs[REG_RSP])
#define FP(u) ((u)->uc_mcontext.gregs[REG_RBP])
#define ARG0(u) ((u)->uc_mcontext.gregs[REG_RDI])
#define ARG1(u) ((u)->uc_mcontext.gregs[REG_RSI])
#define ARG2(u) ((u)->uc_mcontext.gregs[REG_RDX])
#define ARG3(u) ((u)->uc_mcontext.gregs[REG_RCX])
#define LR(u) 0
#define DIRECTION 0x400 /* of string instructions: a function expects upward */
static void settle_flags(ucontext_t *u)
{
    u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)DIRECTION;
}
typedef greg_t reg;
#else
#define PC(u) ((u)->uc_mcontext.pc)
#define SP(u) ((u)->uc_mcontext.sp)
#define FP(u) ((u)->uc_mcontext.regs[29])
#define ARG0(u) ((u)->uc_mcontext.regs[0])
#define ARG1(u) ((u)->uc_mcontext.regs[1])
#define ARG2(u) ((u)->uc_mcontext.regs[2])
#define ARG3(u) ((u)->uc_mcontext.regs[3])
#define LR(u) ((u)->uc_mcontext.regs[30])
static void settle_flags(ucontext_t *u)
{
    (void)u;
}
typedef unsigned long long reg;
#endif

/* --- what it is -------------------------------------------------------------------------------------- */

/* By raise(), of this thread. */
static bool is_abort(int sig, const siginfo_t *info)
{
    return sig == SIGABRT && info->si_code == SI_TKILL && info->si_pid == getpid();
}

/* It comes of what the thread does. */
static bool is_fault(int sig, const siginfo_t *info)
{
    return info->si_code > 0 || is_abort(sig, info);
}

static const char *name_of(int sig)
{
    switch (sig) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    default: return "SIGABRT";
    }
}

static bool is_access(int sig)
{
    return sig == SIGSEGV || sig == SIGBUS;
}

/* In or below the guard, and its stack pointer is there, or about to be. */
static bool is_overflow(const struct g *gp, int sig, uintptr_t addr, uintptr_t sp)
{
    uintptr_t lo = (uintptr_t)stack_lo(gp), guard = stack_kinds[gp->class].guard;
    return is_access(sig) && !(gp->flags & G_UNGUARDED) && addr < lo
           && addr >= lo - guard - FRAME_MOST && sp < lo + FRAME_LAST;
}

static const char *what_is(int sig, int code, uintptr_t addr, uintptr_t pc)
{
    if (sig == SIGFPE) {
        return code == FPE_INTDIV ? "integer divide by zero" : "floating point error";
    }
    if (sig == SIGILL) {
        return "illegal instruction, or a trap of the compiler's";
    }
    if (addr < NULL_PAGE) {
        return addr == pc ? "a call of NULL, or near it" : "NULL, or near it";
    }
    if (sig == SIGBUS) {
        return code == BUS_ADRALN ? "not aligned" : "behind the end of a file, or bad memory";
    }
    switch (stack_place((void *)addr)) {
    case STACK_GUARD: return "the guard of a goroutine's stack";
    case STACK_FREE: return "a stack of which the goroutine has ended";
    case STACK_USED: return "the stack of another goroutine";
    default: return code == SEGV_ACCERR ? "not allowed there" : "nothing there";
    }
}

/* --- fatal ------------------------------------------------------------------------------------------- */

static void say_goroutine(const struct g *gp)
{
    say("goroutine %lu", gp->id);
    if (gp->extra && gp->extra->name[0]) {
        say(" \"%s\"", gp->extra->name);
    }
}

static _Noreturn void die_of_overflow(const struct g *gp, ucontext_t *u)
{
    static char message[128];
    const struct stack_kind *k = &stack_kinds[gp->class];
    report_begin();
    report_keeps_p();
    fmt(message, sizeof message, "stack overflow: goroutine %lu outgrew its stack of %zu bytes",
        gp->id, k->size);
    say("fatal error: %s; raise .stack_size\n", message);
    say("\t");
    say_goroutine(gp);
    say(": sp=%p stack=[%p, %p], %zu bytes of it usable\n", (void *)SP(u), stack_lo(gp),
        gp->stack_hi, k->size - k->guard);
    say("\t.stack_size of pirn_attr is for one goroutine, of pirn_config for all; up to 1 GB\n");
    report_goroutines(message, u);
    _exit(2);
}

/* The signal is blocked here: it ends the process when the handler returns, at the place of the fault. (Left to
 * itself the fault might not come again: a report maps memory, perhaps just there.) */
static void die_by_default(int sig, siginfo_t *info)
{
    signal(sig, SIG_DFL);
    raise_again(sig, info);
}

static void say_fault(int sig, siginfo_t *info, ucontext_t *u, const struct m *mp)
{
    static char message[160];
    uint32_t where = at_load(&mp->where, RELAXED);
    report_begin();
    report_keeps_p();
    uintptr_t addr = (uintptr_t)info->si_addr;
    if (sig == SIGABRT) {
        fmt(message, sizeof message, "SIGABRT: abort() was called");
    } else if (is_access(sig) && info->si_code == SI_KERNEL) { /* which does not say where */
        fmt(message, sizeof message, "%s at an address that can't be one: %s", name_of(sig),
            "a wild pointer, or a frame that was overwritten");
    } else if (where == M_RUNTIME) {
        fmt(message, sizeof message, "%s at address %p, inside pirn", name_of(sig), (void *)addr);
    } else {
        fmt(message, sizeof message, "%s at address %p: %s", name_of(sig), (void *)addr,
            what_is(sig, info->si_code, addr, (uintptr_t)PC(u)));
    }
    say("fatal error: %s\n\tpc=%p sp=%p\n", message, (void *)PC(u), (void *)SP(u));
    report_goroutines(message, u);
}

/* --- panics ------------------------------------------------------------------------------------------ */

void fault_panic(int sig, uintptr_t addr, int code, const void *sp)
{
    if (sig == SIGFPE) {
        panic_by_fault(sp, "runtime error: %s", what_is(sig, code, addr, 0));
    }
    if (addr < NULL_PAGE && code != SI_KERNEL) {
        panic_by_fault(sp, "runtime error: invalid memory address or nil pointer dereference");
    }
    panic_by_fault(sp, "runtime error: %s at address %p", name_of(sig), (void *)addr);
}

static void go_on_in_panic(int sig, const siginfo_t *info, ucontext_t *u)
{
    uintptr_t sp = ((uintptr_t)SP(u) - RED_ZONE - 4 * sizeof(void *)) & ~(uintptr_t)15;
    uintptr_t *kept = (uintptr_t *)sp;
    tool_frame_made((char *)sp - RED_ZONE, (uintptr_t)SP(u) - sp);
    kept[0] = (uintptr_t)SP(u);
    kept[1] = (uintptr_t)PC(u);
    kept[2] = (uintptr_t)FP(u);
    kept[3] = (uintptr_t)LR(u);
    ARG3(u) = SP(u);
    SP(u) = (reg)sp;
    PC(u) = (reg)(uintptr_t)arch_fault_entry;
    ARG0(u) = (reg)sig;
    ARG1(u) = (reg)(uintptr_t)info->si_addr;
    ARG2(u) = (reg)info->si_code;
    settle_flags(u);
}

/* --- the handler ------------------------------------------------------------------------------------- */

static const struct sigaction *before(int sig)
{
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        if (signals[i] == sig) {
            return &faults.before[i];
        }
    }
    throw("fault: a handler for signal %d", sig);
}

static bool is_handler(const struct sigaction *sa)
{
    return sa->sa_flags & SA_SIGINFO || (sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN);
}

/* As without pirn. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
    const struct sigaction *sa = before(sig);
    if (is_handler(sa)) {
        if (sa->sa_flags & SA_SIGINFO) {
            sa->sa_sigaction(sig, info, context);
        } else {
            sa->sa_handler(sig);
        }
    } else if (is_fault(sig, info) || sa->sa_handler == SIG_DFL) {
        die_by_default(sig, info);
    }
}

static void in_goroutine(int sig, siginfo_t *info, ucontext_t *u, struct m *mp)
{
    struct g *gp = mp->curg;
    uintptr_t sp = (uintptr_t)SP(u), lo = (uintptr_t)stack_lo(gp);
    bool in_code = at_load(&mp->where, RELAXED) == M_USER;
    if (is_overflow(gp, sig, (uintptr_t)info->si_addr, sp)) {
        die_of_overflow(gp, u);
    }
    bool on_own_stack = sp > lo + ROOM_FOR_PANIC && sp <= (uintptr_t)gp->stack_hi;
    bool may_panic = sig != SIGILL && sig != SIGABRT;
    if (sched.config.panic_on_fault && may_panic && in_code && on_own_stack) {
        go_on_in_panic(sig, info, u);
    } else if (is_handler(before(sig))) {
        pass_on(sig, info, u);
    } else {
        say_fault(sig, info, u, mp);
        die_by_default(sig, info);
    }
}

/* The scheduler itself, on the stack of its thread. */
static void on_g0(int sig, siginfo_t *info, ucontext_t *u, struct m *mp)
{
    uintptr_t addr = (uintptr_t)info->si_addr, sp = (uintptr_t)SP(u);
    if (is_handler(before(sig))) {
        pass_on(sig, info, u);
        return;
    }
    if (sig == SIGSEGV && addr < sp + FRAME_LAST && addr + FRAME_LAST > sp) {
        fatal("stack overflow: on the stack of a thread of pirn's: sp=%p", (void *)sp);
    }
    say_fault(sig, info, u, mp);
    die_by_default(sig, info);
}

static void handler(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    struct m *mp = getm();
    if (sig == SIGABRT && report_is_mine()) {
        die_by_default(sig, info); /* all has been said */
    } else if (mp && mp->curg && is_fault(sig, info)) {
        in_goroutine(sig, info, context, mp);
    } else if (mp && is_fault(sig, info)) {
        on_g0(sig, info, context, mp);
    } else {
        pass_on(sig, info, context);
    }
    errno = saved;
}

/* --- life -------------------------------------------------------------------------------------------- */

void fault_start(void)
{
    struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&sa.sa_mask);
    faults.installed = sched.config.flags & PIRN_F_FAULTS;
    for (size_t i = 0; i < ARRAY_LEN(signals) && faults.installed; i++) {
        struct sigaction now;
        sigaction(signals[i], &sa, &now);
        if (now.sa_sigaction == handler) { /* put back by the program */
            now = (struct sigaction){.sa_handler = SIG_DFL};
        }
        faults.before[i] = now;
    }
}

/* If the program has put its own handler there meanwhile, that stays. */
void fault_stop(void)
{
    for (size_t i = 0; i < ARRAY_LEN(signals) && faults.installed; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_flags & SA_SIGINFO
            && now.sa_sigaction == handler) {
            sigaction(signals[i], &faults.before[i], NULL);
        }
    }
    faults.installed = false;
}
