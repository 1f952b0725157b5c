/* SPDX-License-Identifier: MIT */
/*
 * Sysmon: a thread without a P that looks at the others now and then.
 *
 * - A P that has not started a new slice for a whole slice, or has taken nothing from its ring meanwhile: its
 *   runnext loses its privilege.
 * - A P that has work queued while another P is idle: wake somebody to steal it; its runnext only
 *   if its goroutine computes. This bounds the delay of the wakes that idle.c leaves out.
 * - A thread that blocks while others have work for its P loses it (retake.c).
 * - Work that has waited, on a P or in the global queue, beside an idle P since the last look but one, while
 *   nobody but sysmon has woken anybody: a wake-up was lost. That is a throw in builds with checks, else it
 *   is counted, and mended.
 * - Threads that have slept for long end, but for one for each P.
 * - A timer that is overdue: the Ps that run are told to look, and an idle one is woken.
 * - Free stacks give their pages back (stackmem.c).
 * - Affinity and CPU quota are read again, unless the program set the number of Ps.
 * - Goroutines that wait for each other's mutexes, if PIRN_DEBUG asks for that (debug/cycles.c).
 * - A deadlock that could not be told from threads about to end is looked at again.
 * - Work, timers and descriptors for which no thread could be made: one is asked for again.
 * - Signals that all Ms block, since the program did when it started the runtime, but somebody watches, come to
 *   this thread.
 *
 * It never allocates, never uses stdio, never makes threads. While Ps run it looks every 10 ms; every 5 while
 * work waits and a P is idle, somebody has blocked in the last second, or slices are short; when a timer is
 * due; and again at once when a thread seems to block, or has said that it may while others wait for its P
 * [S4], unless that was in vain just now. A look costs some 15 us, nearly all for the sleep before it, and more
 * for each thread of which it must ask the kernel what it does (retake.c); so that it costs less than 0.5 % of
 * a CPU while all compute. When all are idle, threads can be made and there is nothing to trim it sleeps until
 * it is kicked, so an idle program uses no CPU. (Where foreign threads hide a possible deadlock it looks once
 * in 2 s.) [S1] pairs with [S2]: either sysmon sees the kick, or the kicker sees that sysmon sleeps. [S3]: the
 * look that takes a kick sees what was done before it, such as a P that runs.
 */
#include <signal.h>

#include "sched/sched.h"

#include "os/cpu.h"

#define LOOK_EVERY ((int64_t)10 * 1000 * 1000)
#define BUSY_EVERY ((int64_t)5 * 1000 * 1000)
#define SOON ((int64_t)250 * 1000)
#define DEAF_FOR 4 /* naps */
#define STARVED_AFTER ((int64_t)10 * 1000 * 1000)
#define TIMERS_EVERY ((int64_t)1 * 1000 * 1000)
#define CPUS_EVERY ((int64_t)1000 * 1000 * 1000)
#define DEADLOCK_FIRST ((int64_t)10 * 1000 * 1000)
#define DEADLOCK_MOST ((int64_t)2 * 1000 * 1000 * 1000)

static struct {
    pthread_t thread;
    at_u32 asleep; /* deep: needs a kick; futex */
    at_u32 kicked; /* since the last look began */
    at_u32 stop;
    at_u32 runs;
    at_u64 let_in, lets_in; /* signals: that are asked for, that it has in */
    at_u32 nap;             /* futex of the short sleep: enum nap */
    bool soon;              /* look again soon */
    bool expects;           /* it was told that somebody may block, and looks whether he does */
    int deaf;               /* naps in which it is not told so */
    uint64_t retaken;       /* sched.retaken before it was told */
    uint32_t ntaken;        /* sched.ntaken after the last look */
    bool busy;              /* some work waits */
    bool lacks;             /* threads can't be made */
    struct starved_look seen_starved;
    struct cpu_limit cpus;
    int64_t cpus_at, handlers_at, trim_at, deadlock_at, deadlock_wait;
} sysmon;

int64_t coarse_now(void)
{
    return (int64_t)at_load(&sched.coarse_now, RELAXED);
}

static int64_t tell_time(void)
{
    int64_t now = now_ns();
    at_store(&sched.coarse_now, (uint64_t)now, RELAXED);
    return now;
}

/* After a P has started, or something is left to trim or to look at again. */
void sysmon_kick(void)
{
    /* [S3]. Not a store: what the kicker before did counts too. */
    at_xchg(&sysmon.kicked, 1, RELEASE);
    at_fence_after_rmw(); /* [S2] */
    if (at_load(&sysmon.asleep, RELAXED) && at_xchg(&sysmon.asleep, 0, RELAXED)) {
        tell_time(); /* it stood still meanwhile */
        futex_wake(&sysmon.asleep, 1);
    }
}

/* Returns when it is so. A bit for each signal; all others it blocks. */
void sysmon_let_in(uint64_t signals)
{
    at_store(&sysmon.let_in, signals, RELAXED);
    while (at_load(&sysmon.runs, RELAXED)
           && at_load(&sysmon.lets_in, ACQUIRE) != signals) { /* [S5] */
        sysmon_kick();
        sysmon_look_now();
        thread_yield();
    }
}

static void let_signals_in(void)
{
    uint64_t in = at_load(&sysmon.let_in, RELAXED);
    sigset_t blocked;
    if (likely(in == at_load(&sysmon.lets_in, RELAXED))) {
        return;
    }
    sigfillset(&blocked);
    for (uint64_t rest = in; rest; rest &= rest - 1) {
        sigdelset(&blocked, __builtin_ctzll(rest) + 1);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    at_store(&sysmon.lets_in, in, RELEASE); /* [S5] */
}

enum nap { AWAKE, NAP_LIGHT, NAP_DEAF, TOLD };

void sysmon_look_now(void)
{
    if (at_load(&sysmon.nap, RELAXED) && at_xchg(&sysmon.nap, AWAKE, RELAXED)) {
        futex_wake(&sysmon.nap, 1);
    }
}

/* By one that is about to block, with work in its queue. [S4] Not exact: else the next look is 10 ms away. */
void sysmon_may_block(void)
{
    uint32_t light = NAP_LIGHT;
    if (at_load(&sysmon.nap, RELAXED) == NAP_LIGHT
        && at_cas(&sysmon.nap, &light, TOLD, RELAXED, RELAXED)) {
        futex_wake(&sysmon.nap, 1);
    }
}

static void nap(int64_t until)
{
    uint32_t how = sysmon.soon || sysmon.expects || sysmon.deaf ? NAP_DEAF : NAP_LIGHT;
    at_store(&sysmon.nap, how, RELAXED);
    if (!at_load(&sysmon.stop, RELAXED)) {
        futex_wait(&sysmon.nap, how, until);
    }
    if (at_xchg(&sysmon.nap, AWAKE, RELAXED) == TOLD) {
        sysmon.expects = true;
        sysmon.retaken = at_load(&sched.retaken, RELAXED);
    } else if (!sysmon.soon && sysmon.deaf) {
        sysmon.deaf--;
    }
}

/* After a look. Those that say so, and don't block, are not worth a look each: then it is deaf for some naps, in
 * which it sees who blocks all the same. */
static void learn(void)
{
    if (sysmon.expects && !sysmon.soon) {
        sysmon.expects = false;
        sysmon.deaf = at_load(&sched.retaken, RELAXED) == sysmon.retaken ? DEAF_FOR : 0;
    }
}

/* A P is idle, nobody looks for work, and threads can be had. If somebody but sysmon was woken since the last
 * look it goes on, each waking the next: how fast is a matter of the machine's load. */
static bool would_starve_locked(int64_t now)
{
    return at_load(&sched.npidle, RELAXED) && !at_load(&sched.nspinning, RELAXED)
           && sched.nwant_m == 0 && !sched.stopped && now >= sched.no_threads_until
           && at_load(&sched.life, RELAXED) == LIFE_RUNNING && sched.ntaken == sysmon.ntaken;
}

/* first: what waits, of P id or, -1, of all. It was there at the last look, which woke somebody: true asks for
 * that. */
static bool look_for_starved(struct starved_look *was, bool waits, uint64_t first, int id,
                             int64_t now)
{
    if (!waits || was->first != first || was->since == 0) {
        was->first = first;
        was->since = waits ? now : 0;
    } else if (now - was->since > STARVED_AFTER) {
        at_count(&sched.starved, 1);
#if PIRN_DEBUG_CHECKS
        throw("sysmon: work has waited on P %d for %ld ms while another P is idle", id,
              (long)((now - was->since) / 1000000));
#endif
        was->since = now;
    }
    (void)id;
    return waits;
}

static bool look_for_starved_on(struct p *pp, int64_t now)
{
    uint32_t head = at_load(&pp->runq.head, RELAXED);
    lock(&sched.lock);
    bool waits = runq_len(&pp->runq) > 0 && would_starve_locked(now);
    unlock(&sched.lock);
    return look_for_starved(&pp->seen_starved, waits, head, pp->id, now);
}

static bool look_for_starved_of_all(int64_t now)
{
    lock(&sched.lock);
    struct g *first = sched.globq.list.head ? sched.globq.list.head : sched.globq.bound.head;
    bool waits = first && would_starve_locked(now);
    unlock(&sched.lock);
    return look_for_starved(&sysmon.seen_starved, waits, (uintptr_t)first, -1, now);
}

/* Those that have slept longest are at the end of the list. Who keeps the time, or sleeps in the poller,
 * stays, and may be there for ever. NULL: there is none. */
static struct m *longest_idle_locked(void)
{
    struct m *mp = sched.midle;
    while (mp && mp->idle_next) {
        mp = mp->idle_next;
    }
    while (mp && (mp->keeps != PIRN_NEVER || at_load(&sched.poll_m, RELAXED) == mp)) {
        mp = mp->idle_prev;
    }
    return mp;
}

/* When to look again. */
static int64_t end_idle_threads(int64_t now)
{
    for (;;) {
        struct m *last = NULL;
        int64_t until = INT64_MAX;
        lock(&sched.lock);
        if (sched.nmidle > at_load(&sched.nprocs, RELAXED) && (last = longest_idle_locked())) {
            until = last->idle_since + sched.thread_idle_most;
        }
        if (!last || now < until) {
            unlock(&sched.lock);
            return until;
        }
        midle_take_locked(last);
        last->retires = true;
        unlock(&sched.lock);
        m_post(last);
    }
}

/* True if the P has work that somebody else could do. */
static bool look_at(struct p *pp, int64_t now)
{
    uint32_t tick = at_load(&pp->tick, RELAXED);
    uint64_t switches = at_load(&pp->counts.switches, RELAXED);
    bool computes = pp->seen_switches == switches;
    if (computes && at_load(&pp->runq.next, RELAXED)) {
        at_store(&sched.futile, 0, RELAXED); /* waking for runnext would pay */
    }
    bool stuck = computes ? !runq_empty(&pp->runq) : runq_len(&pp->runq) > 0;
    if (pp->seen_tick != tick) {
        pp->seen_tick = tick;
        pp->seen_since = now;
        pp->signalled_at = now;
    } else if (now - pp->seen_since >= sched.config.time_slice) {
        pp->seen_since = now;
        at_store(&pp->slice_over, SLICE_OVER, RELAXED);
    }
    uint32_t head = at_load(&pp->runq.head, RELAXED);
    if (pp->seen_head != head || runq_len(&pp->runq) == 0) {
        pp->seen_head = head;
        pp->seen_head_since = now;
    } else if (now - pp->seen_head_since >= sched.config.time_slice) {
        pp->seen_head_since = now;
        at_store(&pp->slice_over, SLICE_RING_STARVES, RELAXED);
    }
    pp->seen_switches = switches;
    return stuck;
}

/* Not npidle == nprocs: a P that is about to retire may still run. */
static bool all_idle(void)
{
    for (uint32_t i = 0; i < at_load(&sched.nallp, ACQUIRE); i++) {
        if (at_load(&at_load(&sched.allp[i], RELAXED)->status, RELAXED) == P_RUNNING) {
            return false;
        }
    }
    return true;
}

/* While a P runs, far ones can wait for a later look. */
static bool timers_need_somebody(void)
{
    return timers_unattended() || (all_idle() && timers_unkept());
}

static void look_at_all(int64_t now)
{
    bool stuck = at_load(&sched.globq.size, RELAXED) > 0;
    sysmon.soon = false;
    uint32_t n = at_load(&sched.nallp, ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        if (at_load(&pp->status, RELAXED) == P_RUNNING) {
            stuck |= look_at(pp, now);
            sysmon.soon |= retake_look(pp, now);
            stuck |= look_for_starved_on(pp, now);
        }
    }
    stuck |= look_for_starved_of_all(now);
    sysmon.busy = stuck;
    bool unpolled = netpoll_unattended();
    if (unpolled) {
        netpoll_look_at_all();
    }
    int64_t next = timers_next();
    bool signals = signals_pending();
    if (next <= now || signals) {
        for (uint32_t i = 0; i < n; i++) {
            struct p *pp = at_load(&sched.allp[i], RELAXED);
            if (at_load(&pp->status, RELAXED) == P_RUNNING) {
                at_store(&pp->timers_due, 1, RELAXED);
            }
        }
    }
    if (at_load(&sched.npidle, RELAXED)
        && (stuck || next <= now || signals || unpolled || timers_need_somebody())) {
        wake_one(NULL);
    }
    lock(&sched.lock);
    sysmon.ntaken = sched.ntaken;
    sysmon.lacks = now < sched.no_threads_until;
    unlock(&sched.lock);
}

/* While Ps run. A timer that is due earlier is worth a look, but not too often. */
static int64_t next_look(int64_t now)
{
    int64_t next = timers_next(), soonest = now + TIMERS_EVERY;
    bool often = sysmon.busy
                 && (at_load(&sched.npidle, RELAXED) || retake_is_keen(now)
                     || sched.config.time_slice < LOOK_EVERY);
    int64_t latest = now + (sysmon.soon ? SOON : often ? BUSY_EVERY : LOOK_EVERY);
    next = next < soonest ? soonest : next;
    return next < latest ? next : latest;
}

static void look_at_cpus(int64_t now)
{
    if (now < sysmon.cpus_at || !at_load(&sched.follow_cpus, RELAXED)) {
        return;
    }
    sysmon.cpus_at = now + CPUS_EVERY;
    int n = cpu_limit_count(&sysmon.cpus);
    if (n != (int)at_load(&sched.nprocs, RELAXED)) {
        factory_want_procs(n);
    }
}

static void look_at_deadlock(int64_t now)
{
    lock(&sched.lock);
    if (!sched.deadlock_pending) {
        sysmon.deadlock_at = INT64_MAX;
        sysmon.deadlock_wait = DEADLOCK_FIRST;
    } else if (sysmon.deadlock_at == INT64_MAX) {
        sysmon.deadlock_at = now + sysmon.deadlock_wait;
    } else if (now >= sysmon.deadlock_at) {
        deadlock_check_locked(0);
        sysmon.deadlock_wait = (int64_t)min_u64((uint64_t)sysmon.deadlock_wait * 4, DEADLOCK_MOST);
        sysmon.deadlock_at = now + sysmon.deadlock_wait;
    }
    unlock(&sched.lock);
}

static void sleep_deep(int64_t until)
{
    at_store(&sysmon.asleep, 1, RELAXED);
    at_fence(SEQ_CST); /* [S1] */
    if (!at_load(&sysmon.kicked, RELAXED) && !at_load(&sysmon.stop, RELAXED)) {
        futex_wait(&sysmon.asleep, 1, until);
    }
    at_store(&sysmon.asleep, 0, RELAXED);
}

static void *sysmon_main(void *arg)
{
    (void)arg;
    while (!at_load(&sysmon.stop, RELAXED)) {
        at_xchg(&sysmon.kicked, 0, ACQUIRE); /* [S3] */
        int64_t now = tell_time();
        let_signals_in();
        look_at_all(now);
        learn();
        look_at_cpus(now);
        look_at_deadlock(now);
        quit_if_asked();
        say_rest();
        int64_t cycles_at = cycles_look(now);
        int64_t threads_at = end_idle_threads(now);
        if (now >= sysmon.handlers_at) {
            sysmon.handlers_at = now + CPUS_EVERY;
            preempt_check_handler();
            sigstack_look();
        }
        if (now >= sysmon.trim_at) {
            sysmon.trim_at = stack_trim(now);
        }
        if (all_idle() && !sysmon.lacks) {
            int64_t until =
                (int64_t)min_u64((uint64_t)sysmon.trim_at, (uint64_t)sysmon.deadlock_at);
            until = (int64_t)min_u64((uint64_t)until, (uint64_t)cycles_at);
            sleep_deep((int64_t)min_u64((uint64_t)until, (uint64_t)threads_at));
            if (sysmon.trim_at == INT64_MAX) {
                sysmon.trim_at = 0; /* look again: things have happened */
            }
        } else {
            nap(next_look(now));
            sysmon.trim_at = 0;
        }
    }
    return NULL;
}

int sysmon_start(void)
{
    at_store(&sysmon.stop, 0, RELAXED);
    at_store(&sysmon.asleep, 0, RELAXED);
    cpu_limit_open(&sysmon.cpus);
    int64_t now = tell_time();
    sysmon.cpus_at = sysmon.handlers_at = now + CPUS_EVERY;
    sysmon.trim_at = 0;
    sysmon.seen_starved = (struct starved_look){0};
    sysmon.expects = false;
    sysmon.deaf = 0;
    at_store(&sysmon.lets_in, 0, RELAXED);
    at_store(&sysmon.runs, 1, RELAXED);
    retake_start();
    sysmon.deadlock_at = INT64_MAX;
    sysmon.deadlock_wait = DEADLOCK_FIRST;
    return thread_create(&sysmon.thread, "pirn-sysmon", sysmon_main, NULL, true);
}

void sysmon_stop(void)
{
    at_store(&sysmon.stop, 1, RELAXED);
    sysmon_look_now(); /* without it (a mutant that survives) 10 ms later */
    sysmon_kick();
    pthread_join(sysmon.thread, NULL);
    at_store(&sysmon.runs, 0, RELAXED);
    retake_stop();
}
