/* SPDX-License-Identifier: MIT */
/*
 * Sysmon: a thread without a P that looks at the others now and then.
 *
 * - A P that has not started a new slice for a whole slice: its runnext loses its privilege.
 * - A P that has work queued while another P is idle: wake somebody to steal it; its runnext only
 *   if its goroutine computes. This bounds the delay of the wakes that idle.c leaves out.
 * - A timer that is overdue: the Ps that run are told to look, and an idle one is woken.
 * - Free stacks give their pages back (stackmem.c).
 * - Affinity and CPU quota are read again, unless the program set the number of Ps.
 * - A deadlock that could not be told from threads about to end is looked at again.
 *
 * It never allocates, never uses stdio, never makes threads. While Ps run it looks every 10 ms;
 * when all are idle and there is nothing to trim it sleeps until it is kicked, so an idle program
 * uses no CPU. (Where foreign threads hide a possible deadlock it looks once in 2 s.) [S1] pairs with
 * [S2]: either sysmon sees the kick, or the kicker sees that sysmon sleeps. [S3]: the look that takes
 * a kick sees what was done before it, such as a P that runs.
 */
#include "sched/sched.h"

#include "os/cpu.h"

#define LOOK_EVERY ((int64_t)10 * 1000 * 1000)
#define TIMERS_EVERY ((int64_t)1 * 1000 * 1000)
#define CPUS_EVERY ((int64_t)1000 * 1000 * 1000)
#define DEADLOCK_FIRST ((int64_t)10 * 1000 * 1000)
#define DEADLOCK_MOST ((int64_t)2 * 1000 * 1000 * 1000)

static struct {
    pthread_t thread;
    at_u32 asleep; /* deep: needs a kick; futex */
    at_u32 kicked; /* since the last look began */
    at_u32 stop;   /* futex of the short sleep */
    struct cpu_limit cpus;
    int64_t cpus_at, trim_at, deadlock_at, deadlock_wait;
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
    } else if (now - pp->seen_since >= sched.config.time_slice) {
        pp->seen_since = now;
        at_store(&pp->slice_over, 1, RELAXED);
    }
    pp->seen_switches = switches;
    return stuck;
}

static void look_at_all(int64_t now)
{
    bool stuck = at_load(&sched.globq.size, RELAXED) > 0;
    uint32_t n = at_load(&sched.nallp, ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        if (at_load(&pp->status, RELAXED) == P_RUNNING && look_at(pp, now)) {
            stuck = true;
        }
    }
    int64_t next = timers_next();
    if (next <= now) {
        for (uint32_t i = 0; i < n; i++) {
            struct p *pp = at_load(&sched.allp[i], RELAXED);
            if (at_load(&pp->status, RELAXED) == P_RUNNING) {
                at_store(&pp->timers_due, 1, RELAXED);
            }
        }
    }
    if (at_load(&sched.npidle, RELAXED) && (stuck || next <= now || timers_unattended())) {
        wake_one(NULL);
    }
}

/* While Ps run. A timer that is due earlier is worth a look, but not too often. */
static int64_t next_look(int64_t now)
{
    int64_t next = timers_next(), soonest = now + TIMERS_EVERY;
    next = next < soonest ? soonest : next;
    return next < now + LOOK_EVERY ? next : now + LOOK_EVERY;
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
        look_at_all(now);
        look_at_cpus(now);
        look_at_deadlock(now);
        if (now >= sysmon.trim_at) {
            sysmon.trim_at = stack_trim(now);
        }
        if (all_idle()) {
            sleep_deep((int64_t)min_u64((uint64_t)sysmon.trim_at, (uint64_t)sysmon.deadlock_at));
            if (sysmon.trim_at == INT64_MAX) {
                sysmon.trim_at = 0; /* look again: things have happened */
            }
        } else {
            futex_wait(&sysmon.stop, 0, next_look(now));
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
    sysmon.cpus_at = now + CPUS_EVERY;
    sysmon.trim_at = 0;
    sysmon.deadlock_at = INT64_MAX;
    sysmon.deadlock_wait = DEADLOCK_FIRST;
    return thread_create(&sysmon.thread, "pirn-sysmon", sysmon_main, NULL, true);
}

void sysmon_stop(void)
{
    at_store(&sysmon.stop, 1, RELAXED);
    futex_wake(&sysmon.stop, 1); /* without it (a mutant that survives) 10 ms later */
    sysmon_kick();
    pthread_join(sysmon.thread, NULL);
}
