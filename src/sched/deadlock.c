/* SPDX-License-Identifier: MIT */
/*
 * The detector of deadlocks: every M sleeps, nothing is runnable, and no thread is left that could
 * change that, and no timer is pending; nobody waits for a descriptor or a signal.
 *
 * Looked at by the last M before it sleeps, and by a foreign thread before it waits. Before it
 * reports, it compares the threads of the process with those it knows to be asleep in pirn: any
 * other thread may still act, so then there is no report. A thread that has just ended may be
 * counted for a moment, so sysmon looks again, ever more rarely.
 */
#include "sched/sched.h"

const char *const wait_reason_names[WAIT_REASONS] = {
    [WAIT_NONE] = "waiting",
    [WAIT_CHAN_SEND] = "chan send",
    [WAIT_CHAN_RECV] = "chan receive",
    [WAIT_CHAN_SEND_NIL] = "chan send (NULL channel)",
    [WAIT_CHAN_RECV_NIL] = "chan receive (NULL channel)",
    [WAIT_CHAN_SEND_UNTIL] = "chan send with deadline",
    [WAIT_CHAN_RECV_UNTIL] = "chan receive with deadline",
    [WAIT_COND_UNTIL] = "cond wait with deadline",
    [WAIT_SLEEP_CTX] = "sleep",
    [WAIT_GROUP] = "group wait",
    [WAIT_GROUP_ROOM] = "group go (limit)",
    [WAIT_TIMER] = "timer stop",
    [WAIT_FILE] = "file",
    [WAIT_OPEN] = "open",
    [WAIT_CLOSE] = "close",
    [WAIT_RESOLVE] = "name lookup",
    [WAIT_SELECT] = "select",
    [WAIT_SELECT_NONE] = "select (no cases)",
    [WAIT_MUTEX] = "mutex lock",
    [WAIT_RWMUTEX_LOCK] = "rwmutex lock",
    [WAIT_RWMUTEX_RLOCK] = "rwmutex rlock",
    [WAIT_COND] = "cond wait",
    [WAIT_SEM] = "semaphore acquire",
    [WAIT_BARRIER] = "barrier wait",
    [WAIT_WG] = "wait group wait",
    [WAIT_SLEEP] = "sleep",
    [WAIT_READ] = "IO read",
    [WAIT_WRITE] = "IO write",
    [WAIT_READ_UNTIL] = "IO read",
    [WAIT_WRITE_UNTIL] = "IO write",
    [WAIT_PARK] = "park",
};

static bool all_asleep_locked(void)
{
    return !sched.stopped && at_load(&sched.life, RELAXED) == LIFE_RUNNING && sched.nm > 0
           && sched.nmidle + sched.nmlocked == sched.nm && sched.nwant_m == 0
           && at_load(&sched.globq.size, RELAXED) == 0
           && at_load(&sched.npidle, RELAXED) == at_load(&sched.nprocs, RELAXED);
}

/* Ms, the factory, sysmon, helpers that nobody waits for, those who wait in pirn, and the threads of a
 * sanitizer. */
static int threads_known(int helpers)
{
    return (int)(sched.nm + at_load(&sched.nforeign_parked, RELAXED)) + 2 + TOOL_THREADS + helpers;
}

/* Does not return if there is a deadlock. mine: how many of the foreign calls under way are the caller's own. */
void deadlock_check_locked(uint32_t mine)
{
    lock_must_hold(&sched.lock);
    sched.deadlock_pending = false;
    if (!(sched.config.flags & PIRN_F_DEADLOCK) || !all_asleep_locked()
        || timers_next() != PIRN_NEVER || netpoll_awaited() || signals_watched()) {
        return;
    }
    int helpers = io_threads_idle();
    int threads = thread_count(); /* an error means: not known */
    if (at_load(&sched.nforeign, RELAXED) > mine || threads < 0 || helpers < 0
        || helpers != io_threads_idle() /* one has come or gone meanwhile */
        || threads > threads_known(helpers)) {
        sched.deadlock_pending = true;
        sysmon_kick();
        return;
    }
    unlock(&sched.lock); /* the program's on_fatal may look at the runtime */
    if (g_count() == 0 && at_load(&sched.main_exited, RELAXED)) {
        fatal("no goroutines (main called pirn_exit) - deadlock!");
    }
    fatal("all goroutines are asleep - deadlock!");
}
