/* SPDX-License-Identifier: MIT */
/*
 * Signals: the handler, and whose the action of each signal is. It is pirn's from the first who watches the
 * signal to the end of the last, or of the runtime, and then the program's again. The handler notes the
 * signal in `pending` and wakes sysmon, which sees to it that an M looks for work; that one hands it out
 * (watch.c).
 *
 * No signal is lost. [N1] A handler counts itself, and then looks whether the signal is still wanted; who
 * takes the handler away says that it is not, and then waits for handlers, before it looks at what is
 * pending. A handler that comes too late sends the signal to its own thread again: when it returns, the
 * action is that of the program, or of the next who watches.
 *
 * A handler that the program installs in place of pirn's stays there, and is what comes back after the next watch.
 * It may call pirn's, which it has replaced: if nobody watches, nothing is left to do then, since to send it again
 * would never end.
 */
#include "io/signal.h"

#include <errno.h>

#include "os/raise.h"

#define SIGNALS 65

static struct {
    /* under the lock of watch.c */
    enum signal_action action[SIGNALS];
    struct sigaction
        before[SIGNALS]; /* the program's; read by handlers, while the action is ours */
    uint64_t let_in;     /* by sysmon: a bit for each */
    /* atomic */
    at_u64 wanted, pending;
    at_u64 replaced; /* once, by the program; never cleared, since its handler may come back */
    at_u32 noting;   /* how many handlers are about to note a signal */
} signals;

/* --- the handler ------------------------------------------------------------------------------------ */

/* It comes of what the thread does, which must not go on as if nothing had been. */
static bool is_fault(int sig, const siginfo_t *info)
{
    bool may_be = sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL
                  || sig == SIGTRAP || sig == SIGSYS;
    return may_be && info->si_code > 0;
}

static void handle_fault(int sig, siginfo_t *info, void *context)
{
    const struct sigaction *before = &signals.before[sig];
    if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN) {
        signal(sig, SIG_DFL); /* as the kernel does if a fault is ignored */
        raise_again(sig, info);
    } else if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(sig, info, context);
    } else {
        before->sa_handler(sig);
    }
}

/* Nobody is there who would hand it out: as if pirn had never been. */
static void handle_forked(int sig, const siginfo_t *info)
{
    sigaction(sig, &signals.before[sig], NULL);
    raise_again(sig, info);
}

static void handler(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    if (is_fault(sig, info)) {
        handle_fault(sig, info, context);
        errno = saved;
        return;
    }
    if (unlikely(forked)) {
        handle_forked(sig, info);
        errno = saved;
        return;
    }
    at_add(&signals.noting, 1, RELAXED);
    at_fence(SEQ_CST); /* [N1] */
    bool wanted = at_load(&signals.wanted, RELAXED) & signal_bit(sig);
    if (wanted) {
        at_or(&signals.pending, signal_bit(sig), RELAXED);
    }
    at_add(&signals.noting, (uint32_t)-1, RELEASE); /* [N1] */
    if (wanted) {
        sysmon_kick();
        sysmon_look_now();
    } else if (!(at_load(&signals.replaced, RELAXED) & signal_bit(sig))) {
        raise_again(sig, info);
    }
    errno = saved;
}

/* --- actions ------------------------------------------------------------------------------------------ */

bool signal_can_be_caught(int sig)
{
    struct sigaction sa;
    return sig >= 1 && sig < SIGNALS && sig != SIGKILL && sig != SIGSTOP
           && sigaction(sig, NULL, &sa) == 0; /* some are libc's own */
}

/* One that is ours and that the program has blocked in all Ms comes to sysmon. It must not any more before the
 * action is the program's: that counts on the block. */
static void let_in(int sig, bool in)
{
    if (sigismember(&sched.sigmask, sig) == 1) {
        signals.let_in = (signals.let_in & ~signal_bit(sig)) | (in ? signal_bit(sig) : 0);
        sysmon_let_in(signals.let_in);
    }
}

/* Not, if the program has changed it meanwhile. */
static bool is_as_left(const struct sigaction *sa, enum signal_action by)
{
    return by == SIGNAL_OURS ? sa->sa_flags & SA_SIGINFO && sa->sa_sigaction == handler
                             : by == SIGNAL_IGNORED && sa->sa_handler == SIG_IGN;
}

/* While the handler is ours it is wanted, so that one that comes too late is not sent round for ever. */
int signal_set_action(int sig, enum signal_action to)
{
    enum signal_action from = signals.action[sig];
    struct sigaction now, sa = {.sa_handler = SIG_IGN};
    if (from == to && to != SIGNAL_IGNORED) {
        return 0;
    }
    if (preempt_sigaction(sig, NULL, &now)) {
        return -errno;
    }
    bool is_programs = !is_as_left(&now, from);
    if (is_programs) {
        signals.before[sig] = now;
    }
    if (from == SIGNAL_OURS) {
        let_in(sig, false);
        at_or(&signals.replaced, is_programs ? signal_bit(sig) : 0, RELAXED);
    }
    if (to == SIGNAL_PROGRAMS) {
        sa = signals.before[sig];
    } else if (to == SIGNAL_OURS) {
        sa.sa_sigaction = handler;
        sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        sigfillset(&sa.sa_mask);
        at_or(&signals.wanted, signal_bit(sig), RELAXED);
    }
    bool is_there = to == SIGNAL_PROGRAMS && is_programs;
    int err = !is_there && preempt_sigaction(sig, &sa, NULL) ? -errno : 0;
    signals.action[sig] = err ? from : to;
    if (signals.action[sig] != SIGNAL_OURS) {
        at_and(&signals.wanted, ~signal_bit(sig), RELAXED);
    } else {
        let_in(sig, true);
    }
    return err;
}

/* The first error. */
int signal_set_actions(uint64_t set, enum signal_action to)
{
    int err = 0;
    for (; set; set &= set - 1) {
        int e = signal_set_action(signal_lowest(set), to);
        err = err ? err : e;
    }
    return err;
}

/* --- what has come ------------------------------------------------------------------------------------ */

bool signals_noted(void)
{
    return at_load(&signals.pending, RELAXED);
}

uint64_t signals_take(void)
{
    return at_xchg(&signals.pending, 0, RELAXED);
}

void signals_wait_for_handlers(void)
{
    at_fence(SEQ_CST); /* [N1] */
    while (at_load(&signals.noting, ACQUIRE)) {
        thread_yield();
    }
}
