/* SPDX-License-Identifier: MIT */
/*
 * Preemption of any code, by switching kernel threads.
 *
 * A goroutine can't be switched away from inside a signal handler: it may hold malloc's lock, an address
 * in thread-local storage, a FILE. So the thread stays with it. The handler, on the thread's signal
 * stack, gives the P to another thread, queues the goroutine bound to this one, and sleeps; whoever
 * comes to the goroutine gives his P to this thread, the handler returns, and the code goes on at the
 * instruction where it was.
 *
 * The signal comes from a timer on the CPU clock of the thread, every half slice. It never interrupts a
 * system call that waits: a thread that waits uses no CPU. A goroutine that runs when it fires, and ran
 * when it fired before, without a switch in between, has used up its slice.
 *
 * Rules
 * - In the runtime (entry.c) nothing happens but a note for leave(), which then does the same. There
 *   the thread may hold locks of pirn's.
 * - The handler takes locks of pirn's only, allocates nothing, makes no thread. If there is no thread for
 *   the P it asks for one and returns: the goroutine goes on for another half slice.
 * - Few threads are made for it (factory_want_spare_locked). When there are no more, goroutines that have
 *   a thread take turns.
 * - Where the timer can't be made, sysmon sends the signal, which may interrupt system calls.
 *
 * The signal is SIGURG unless configured: nobody uses it for long, it is ignored by default, and two
 * pending are one. One that is not ours goes to the handler that was there before: the program's. That may
 * change while handlers run on any number of threads, each for as long as it likes. So all that they need to
 * know of it is one word; the rest is under a lock that no handler takes. [C2] Who calls it sees what was done
 * before it was installed.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "sched/switch.h"

#define TICKS_PER_SLICE 2
#define LEAST_SLICE ((int64_t)8 * 1000 * 1000) /* two ticks of the kernel at 250 Hz */

enum { REGS_WANTED = 1, REGS_SEEN };

static struct {
    bool installed; /* while the runtime runs */
    struct lock lock;
    /* under the lock */
    struct sigaction before;
    /* atomic */
    at_u64 chained; /* its function, and how it is called; written under the lock */
    at_u32 said;    /* that there are no timers */
} preempt = {.lock = LOCK_INIT(RANK_HANDLER)};

#define CHAINED_INFO                                                                               \
    ((uint64_t)1 << 63) /* it takes three arguments; no address of a program has this bit */

/* --- whose turn it is ----------------------------------------------------------------------------- */

/* Has it computed, and nothing else, since the last look? Then it has had a slice, or is to go anyway. */
bool preempt_due(struct m *mp)
{
    struct p *pp = mp->p;
    if (!pp || !mp->curg) {
        return false;
    }
    if (at_load(&pp->retire, RELAXED)) {
        return true;
    }
    return mp->seen.p == pp && mp->seen.tick == at_load(&pp->tick, RELAXED)
           && mp->seen.switches == at_load(&pp->counts.switches, RELAXED) && p_has_work(pp);
}

/* The clock has ticked. */
static bool look(struct m *mp)
{
    struct p *pp = mp->p;
    bool due = preempt_due(mp);
    if (pp && !due) {
        uint32_t tick = at_load(&pp->tick, RELAXED);
        if (mp->seen.p == pp && mp->seen.tick == tick
            && mp->seen.switches != at_load(&pp->counts.switches, RELAXED)) {
            at_store(&pp->slice_over, SLICE_OVER,
                     RELAXED); /* some that ready each other: choose() sees to it */
        }
        mp->seen.p = pp;
        mp->seen.tick = tick;
        mp->seen.switches = at_load(&pp->counts.switches, RELAXED);
    }
    return due;
}

/* In the runtime, with a P, from a goroutine: lets another thread go on, and waits for its turn. */
void preempt_here(struct m *mp)
{
    struct p *pp = mp->p;
    lock(&sched.lock);
    /* The world, by this one: all others are marked for it. It may be marked as one P too many. */
    bool stopped = sched.stopped && !(at_load(&pp->retire, RELAXED) & P_RETIRE_WORLD);
    if (m_told_to_stop(mp) || stopped) {
        unlock(&sched.lock);
        if (stopped) {
            at_or(&mp->attention, M_PREEMPT, RELAXED); /* when it has started the world */
        }
        return;
    }
    struct m *heir = NULL;
    struct p *other = NULL;
    if (!sched.midle) {
        factory_want_spare_locked(); /* for the others: the heir may have a goroutine of its own */
    }
    if (at_load(&pp->retire, RELAXED)) {
        p_give_up_locked(mp);
        /* If there is one, also one that waits for a thread: nobody else may get to this goroutine before
         * that is made, and who makes it may wait for malloc's lock, which this goroutine may hold. */
        if (!(other = p_take_locked(NULL))) {
            m_queue_bound_locked(mp);
        }
    } else if ((heir = m_give_way_locked(mp))) {
        at_count(&pp->counts.preempted, 1);
    } else {
        unlock(&sched.lock);
        return;
    }
    bool looks = heir && !heir->nextp_g; /* for more than it has */
    unlock(&sched.lock);
    if (heir) {
        m_post(heir);
    }
    if (!looks) {
        wake_for(NULL);
    }
    if (other) {
        p_bind(mp, other);
    } else {
        m_wait_for_p(mp);
    }
}

/* --- the handler ----------------------------------------------------------------------------------- */

/* From the timer of this thread, or preempt_send, whose signal has lost its sender if the kernel had no room
 * for that. One that has it is no more expected without. (If the next is just being sent, and there is no room, that
 * is taken for the program's; sysmon, or who stops the world, sends another.) */
static bool is_ours(const siginfo_t *info, struct m *mp)
{
    if (!mp) {
        return false;
    }
    if (info->si_code == SI_TIMER || info->si_code == SI_QUEUE) {
        bool ours = info->si_value.sival_ptr == mp;
        if (ours && info->si_code == SI_QUEUE) {
            at_store(&mp->signalled, 0, RELAXED);
        }
        return ours;
    }
    return info->si_code == SI_USER && info->si_pid == 0 && at_xchg(&mp->signalled, 0, RELAXED);
}

/* The signal for which another handler is called, and the frame from which. One that was installed after ours may
 * call ours in turn, from further down and with what it was given: once is enough. What one leaves here that jumps
 * out does not match the next signal: the kernel puts that, and so our frame, elsewhere, or both where they were. */
static __thread struct chaining {
    const void *info, *context;
    uintptr_t frame;
} chaining __attribute__((tls_model("initial-exec")));

static void call_handler_before(int sig, siginfo_t *info, void *context)
{
    uint64_t word = at_load(&preempt.chained, ACQUIRE); /* [C2] */
    uintptr_t fn = (uintptr_t)(word & ~CHAINED_INFO);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct chaining outer = chaining;
    bool again = here < outer.frame && (info == outer.info || context == outer.context);
    if (again || fn == (uintptr_t)SIG_DFL || fn == (uintptr_t)SIG_IGN) {
        return;
    }
    chaining = (struct chaining){.info = info, .context = context, .frame = here};
    if (word & CHAINED_INFO) {
        ((void (*)(int, siginfo_t *, void *))fn)(sig, info, context);
    } else {
        ((void (*)(int))fn)(sig);
    }
    chaining = outer;
}

static void set_handler_before_locked(const struct sigaction *sa)
{
    preempt.before = *sa;
    uint64_t info = sa->sa_flags & SA_SIGINFO ? CHAINED_INFO : 0;
    at_store(&preempt.chained, (uintptr_t)sa->sa_handler | info, RELEASE); /* [C2] */
}

/* For who looks for addresses in all memory. */
void preempt_show_registers(struct m *mp, const void *context)
{
    const ucontext_t *u = context;
    for (int i = 0; i < ARCH_REGS; i++) {
#if defined(__x86_64__)
        mp->regs[i] = (uint64_t)u->uc_mcontext.gregs[i]; /* without rip, which is the 17th */
#else
        mp->regs[i] = u->uc_mcontext.regs[i];
#endif
    }
    at_store(&mp->regs_seen, REGS_SEEN, RELEASE); /* [V1] */
}

static void handler(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    struct m *mp = getm();
    if (!is_ours(info, mp)) {
        call_handler_before(sig, info, context);
        errno = saved;
        return;
    }
    if (at_load(&mp->regs_seen, RELAXED) == REGS_WANTED) {
        preempt_show_registers(mp, context);
    }
    uint32_t where = at_load(&mp->where, RELAXED);
    if (where == M_RUNTIME) {
        if (mp->curg && look(mp)) {
            at_or(&mp->attention, M_PREEMPT, RELAXED);
        }
    } else if (where == M_USER && !m_told_to_stop(mp)) {
        at_store(&mp->where, M_RUNTIME, RELAXED);
        at_fence_light(); /* [E1] */
        at_store(&mp->context, context, RELAXED);
        m_settle(mp);
        if (mp->p && look(mp)) {
            preempt_here(mp);
        }
        at_store(&mp->context, NULL, RELAXED);
        at_store(&mp->where, M_USER, RELEASE); /* [E2] */
    }
    errno = saved;
}

/* --- threads --------------------------------------------------------------------------------------- */

static int64_t slice(void)
{
    return (int64_t)max_u64((uint64_t)sched.config.time_slice, LEAST_SLICE);
}

/* In the new thread, which still blocks all signals. */
void preempt_thread_begin(struct m *mp)
{
    if (!sched.preempt) {
        return;
    }
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID,
                          .sigev_signo = sched.preempt_signal,
                          .sigev_value.sival_ptr = mp};
    ev._sigev_un._tid = at_load(&mp->tid, RELAXED);
    int64_t ns = slice() / TICKS_PER_SLICE;
    struct timespec half = {.tv_sec = ns / PIRN_SEC, .tv_nsec = ns % PIRN_SEC};
    struct itimerspec every = {.it_interval = half, .it_value = half};
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &ev, &mp->timer) == 0) {
        at_store(&mp->has_timer, timer_settime(mp->timer, 0, &every, NULL) == 0, RELAXED);
        if (!at_load(&mp->has_timer, RELAXED)) {
            timer_delete(mp->timer);
        }
    }
    if (!at_load(&mp->has_timer, RELAXED) && !at_xchg(&preempt.said, 1, RELAXED)) {
        say("pirn: no timers for preemption (%s): sysmon sends the signals, and system calls may "
            "be "
            "interrupted\n",
            strerrordesc_np(errno));
    }
}

void preempt_thread_end(struct m *mp)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    lock(&sched.lock);
    preempt_timer_end_locked(mp);
    unlock(&sched.lock);
}

void preempt_timer_end_locked(struct m *mp)
{
    if (at_load(&mp->has_timer, RELAXED)) {
        timer_delete(mp->timer);
        at_store(&mp->has_timer, false, RELAXED);
    }
}

/* By who must, from another thread. The M has a thread: sched.lock is held, or it is sysmon that saw it. */
void preempt_send(struct m *mp)
{
    siginfo_t info = {.si_signo = sched.preempt_signal, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = mp;
    int tid = at_load(&mp->tid, RELAXED);
    at_store(&mp->signalled, 1, RELAXED);
    syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, sched.preempt_signal, &info);
}

/* The world stands still, but this one, with a goroutine, is in a system call or on its way back. Its call may end
 * with EINTR. */
bool preempt_see_registers(struct m *mp, int64_t deadline)
{
    if (!preempt.installed) {
        return false;
    }
    at_store(&mp->regs_seen, REGS_WANTED, RELAXED);
    preempt_send(mp);
    while (at_load(&mp->regs_seen, ACQUIRE) != REGS_SEEN) { /* [V1] */
        if (now_ns() >= deadline) {
            return false;
        }
        thread_yield();
    }
    return true;
}

/* --- life -------------------------------------------------------------------------------------------- */

static bool is_pirns(const struct sigaction *sa)
{
    return sa->sa_flags & SA_SIGINFO && sa->sa_sigaction == handler;
}

/* What is there, if it is not pirn's, is the one before. First: so is nothing, if that was left there, or put back
 * by the program. */
static int install_locked(bool first)
{
    struct sigaction now = {.sa_handler = SIG_DFL},
                     ours = {.sa_sigaction = handler,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    if (!first && (sigaction(sched.preempt_signal, NULL, &now) || is_pirns(&now))) {
        return 0;
    }
    if (sigaction(sched.preempt_signal, &ours, &now)) {
        return -errno;
    }
    if (!is_pirns(&now)) {
        set_handler_before_locked(&now);
    } else if (first) {
        set_handler_before_locked(&(struct sigaction){.sa_handler = SIG_DFL});
    }
    return 0;
}

int preempt_start(void)
{
    at_store(&preempt.said, 0, RELAXED);
    sched.preempt_signal = sched.config.preempt_signal ? sched.config.preempt_signal : SIGURG;
    sigdelset(&sched.sigmask, sched.preempt_signal);
    preempt.installed = false;
    if (!sched.preempt) {
        return 0;
    }
    if (sched.config.time_slice < LEAST_SLICE) {
        say("pirn: a time slice of %ld us is too short for the kernel's clock: it is 8 ms\n",
            (long)(sched.config.time_slice / PIRN_US));
    }
    lock(&preempt.lock);
    int err = install_locked(true);
    unlock(&preempt.lock);
    preempt.installed = !err;
    return err;
}

/* For who wants the signal for the program: it gets those that are not ours. */
int preempt_sigaction(int sig, const struct sigaction *sa, struct sigaction *old)
{
    if (!preempt.installed || sig != sched.preempt_signal) {
        return sigaction(sig, sa, old);
    }
    lock(&preempt.lock);
    install_locked(false); /* one of the program's that was not seen yet comes first */
    struct sigaction before = preempt.before;
    if (sa) {
        set_handler_before_locked(sa);
    }
    unlock(&preempt.lock);
    if (old) {
        *old = before;
    }
    return 0;
}

/* If the program has put its own handler there meanwhile, that stays. */
void preempt_stop(void)
{
    struct sigaction now;
    lock(&preempt.lock);
    if (preempt.installed && sigaction(sched.preempt_signal, NULL, &now) == 0 && is_pirns(&now)) {
        sigaction(sched.preempt_signal, &preempt.before, NULL);
    }
    unlock(&preempt.lock);
    preempt.installed = false;
}

/* By sysmon, now and then: a handler that the program has installed since is called by ours. */
void preempt_check_handler(void)
{
    if (preempt.installed) {
        lock(&preempt.lock);
        install_locked(false);
        unlock(&preempt.lock);
    }
}
