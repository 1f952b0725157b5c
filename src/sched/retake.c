/* SPDX-License-Identifier: MIT */
/*
 * Taking the P from a thread that blocks, on behalf of sysmon: entry.c has the protocol.
 *
 * A thread loses its P when it is seen in the same call twice, a quarter of a millisecond apart, while
 * others have work for the P. Whether it is in one it has announced (syscall.c), or is asked about in
 * /proc/self/task/TID/syscall, which says "running" or where it waits. That costs 4 to 10 us; so first, for a
 * tenth of that, its CPU clock: one that has used its CPU since the last look is taken to run. How much is
 * enough depends. Where nobody has blocked lately a quarter of the time is, and sysmon need not look often;
 * for a second after somebody has, nearly all (it is *keen*). It is never signalled: the call that it is in would
 * end with EINTR. It comes back without a P, runs on to its next entry into pirn or tick of its CPU clock, and
 * queues there. One that blocks for long loses its P though nobody wants it: with all Ps idle sysmon can sleep.
 *
 * Where /proc or membarrier is denied (seccomp, a process that may not be dumped) the thread is
 * signalled when its slice is over; that is said once.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sched/sched.h"

#define TWICE_AFTER ((int64_t)200 * 1000) /* ns between the two looks */
#define UNWANTED_AFTER ((int64_t)100 * 1000 * 1000)
#define SHORT ((int64_t)1000 * 1000)
#define KEEN_FOR ((int64_t)1000 * 1000 * 1000)

static struct {
    struct lock lock; /* sysmon asks, and who stops the world */
    int reserve;      /* a descriptor for when there are no more; -1: none; under lock */
    at_u32 said;
    AT(bool) denied;    /* for good */
    AT(bool) blind;     /* for want of a descriptor, or of memory: it may come back */
    int64_t keen_until; /* sysmon's */
} retake = {.lock = LOCK_INIT(RANK_PROC), .reserve = -1};

static int open_proc(int tid)
{
    char path[64];
    fmt(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void keep_reserve_locked(void)
{
    if (retake.reserve < 0) {
        retake.reserve = open("/proc/self", O_PATH | O_CLOEXEC);
    }
}

static void say_denied(const char *what, int err)
{
    at_store(&retake.denied, true, RELAXED);
    if (!at_xchg(&retake.said, 1, RELAXED)) {
        say("pirn: %s (%s): a thread that blocks is not seen, it keeps its P until its slice is "
            "over, "
            "and its call may be interrupted\n",
            what, strerrordesc_np(err));
    }
}

static bool is_denied(void)
{
    return at_load(&retake.denied, RELAXED);
}

static bool is_want(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM;
}

/* The asker has such a file, if anybody has: else it is not a thread that has gone, but /proc. */
static bool have_proc(void)
{
    int fd = open_proc(gettid());
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0 || is_want(errno);
}

/* Is the thread asleep in the kernel? */
static bool is_blocked(int tid)
{
    char text[16] = "";
    lock(&retake.lock);
    int fd = open_proc(tid);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && retake.reserve >= 0) {
        close(retake.reserve);
        retake.reserve = -1;
        fd = open_proc(tid);
    }
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    int err = errno;
    if (fd >= 0) {
        close(fd);
    }
    keep_reserve_locked();
    unlock(&retake.lock);
    bool blind = n < 0 && is_want(err);
    at_store(&retake.blind, blind, RELAXED);
    if (n < 0 && ((err != ENOENT && err != ESRCH) || !have_proc())) {
        say_denied("cannot read /proc/self/task/.../syscall", err);
        at_store(&retake.denied, !blind, RELAXED);
    }
    return n > 0 && text[0] != 'r';
}

/* --- taking --------------------------------------------------------------------------------------- */

/* The thread that had pp has been decided against. (Not by way of its m.p: it may be back already, and
 * wait for the lock.) */
static struct m *take_locked(struct p *pp)
{
    at_store(&pp->m, NULL, RELAXED);
    at_count(&sched.retaken, 1);
    if (at_load(&pp->retire, RELAXED) & P_RETIRE_WORLD) {
        p_stopped_locked(pp);
        return NULL;
    }
    return p_pass_on_locked(pp, NULL);
}

/* True: the P of mp, which announced that it blocks, is ours. */
static bool decide_announced(struct m *mp)
{
    uint32_t where = M_ANNOUNCED;
    return at_cas(&mp->where, &where, M_TAKEN, ACQ_REL, RELAXED); /* [B1] */
}

/* The same for one that did not. */
static bool decide_unannounced(struct p *pp, struct m *mp)
{
    at_or(&mp->attention, M_ASKED, RELAXED);
    fence_heavy();                                                                        /* [E1] */
    bool same = at_load(&mp->where, ACQUIRE) == M_USER && at_load(&pp->m, RELAXED) == mp; /* [E2] */
    if (at_load(&fence_light_is_full, RELAXED)) { /* it was denied just now: nothing is sure */
        say_denied("no membarrier", ENOSYS);
        same = false;
    }
    uint32_t a = at_load(&mp->attention, RELAXED);
    while (a & M_ASKED) {
        uint32_t to = (a & ~(uint32_t)M_ASKED) | (same ? M_LOST : 0);
        if (at_cas(&mp->attention, &a, to, ACQ_REL, RELAXED)) {
            return same;
        }
    }
    return false; /* it came back in the meantime, and keeps its P */
}

/* Takes pp from mp, if mp still blocks. */
static void take(struct p *pp, struct m *mp, bool announced)
{
    struct m *heir = NULL;
    lock(&sched.lock);
    bool stopped = sched.stopped && !(at_load(&pp->retire, RELAXED) & P_RETIRE_WORLD);
    if (at_load(&pp->m, RELAXED) == mp && !m_told_to_stop(mp) && !stopped
        && (announced ? decide_announced(mp) : decide_unannounced(pp, mp))) {
        heir = take_locked(pp);
    }
    unlock(&sched.lock);
    if (heir) {
        m_post(heir);
    }
}

/* --- looking -------------------------------------------------------------------------------------- */

/* Somebody would use the P: it has work, or another has more than it can do and nobody is idle. */
static bool is_wanted(struct p *pp)
{
    return p_has_work(pp) || (!at_load(&sched.npidle, RELAXED) && work_visible());
}

static bool seen_before(struct p *pp, struct m *mp, int64_t now, int64_t after)
{
    struct blocked_look is = {.m = mp,
                              .tick = at_load(&pp->tick, RELAXED),
                              .nblocking = at_load(&mp->nblocking, RELAXED),
                              .since = now};
    struct blocked_look *was = &pp->seen_blocked;
    if (was->m == is.m && was->tick == is.tick && was->nblocking == is.nblocking) {
        return now - was->since >= after;
    }
    *was = is;
    return false;
}

bool retake_is_keen(int64_t now)
{
    return now < retake.keen_until;
}

/* It has run since the last look, so it does not block; or if it does, then since a moment ago, and the next look
 * is soon enough. With looks 10 ms apart, who is not keen sees one that blocks within 18. */
static bool keeps_running(struct p *pp, struct m *mp, int64_t now)
{
    struct cpu_look was = pp->seen_cpu;
    pp->seen_cpu =
        (struct cpu_look){.m = mp, .at = now, .used = thread_cpu_ns(at_load(&mp->tid, RELAXED))};
    if (was.m != mp) {
        was.at = at_load(&mp->went_on.at, RELAXED);
        was.used = at_load(&mp->went_on.used, RELAXED);
    }
    int64_t passed = now - was.at;
    int64_t enough = retake_is_keen(now) ? passed - passed / 16 : passed / 4;
    return pp->seen_cpu.used - was.used > enough;
}

/* Where neither a timer nor /proc helps: two signals in a slice, as the timer would send; one at each look, if
 * those are further apart. */
static void signal_if_over(struct p *pp, struct m *mp, int64_t now)
{
    if (!sched.preempt
        || !(is_denied() || at_load(&retake.blind, RELAXED) || !at_load(&mp->has_timer, RELAXED))) {
        return;
    }
    retake.keen_until = now + KEEN_FOR;
    if (now - pp->signalled_at >= sched.config.time_slice / 2) {
        pp->signalled_at = now;
        preempt_send(mp);
    }
}

bool retake_look(struct p *pp, int64_t now)
{
    struct m *mp = at_load(&pp->m, ACQUIRE); /* [E3] */
    uint32_t where = mp ? at_load(&mp->where, RELAXED) : M_RUNTIME;
    if (where != M_ANNOUNCED && where != M_USER) {
        pp->seen_blocked.m = NULL;
        return false;
    }
    bool announced = where == M_ANNOUNCED, wanted = is_wanted(pp);
    if (!announced
        && (is_denied() || keeps_running(pp, mp, now) || !is_blocked(at_load(&mp->tid, RELAXED)))) {
        pp->seen_blocked.m = NULL;
        if (wanted) {
            signal_if_over(pp, mp, now);
        }
        return false;
    }
    struct blocked_look was = pp->seen_blocked;
    bool blocks = seen_before(pp, mp, now, wanted ? TWICE_AFTER : UNWANTED_AFTER);
    /* It announces one short call after the other: the next look but one is soon enough. */
    bool again = announced && !blocks && was.m == mp && pp->seen_blocked.since == now
                 && now - was.since < SHORT;
    if (wanted && !announced) { /* who announces it asks for a look */
        retake.keen_until = now + KEEN_FOR;
    }
    if (blocks) {
        take(pp, mp, announced);
    }
    return wanted && !again;
}

/* For who stops the world: whoever blocks there does not hold it up. True: it runs, and needs a signal. */
bool retake_for_world(struct p *pp)
{
    struct m *mp = at_load(&pp->m, ACQUIRE); /* [E3] */
    uint32_t where = mp ? at_load(&mp->where, RELAXED) : M_RUNTIME;
    if (where == M_ANNOUNCED) {
        take(pp, mp, true);
    } else if (where == M_USER) {
        if (is_denied() || !is_blocked(at_load(&mp->tid, RELAXED))) {
            return true;
        }
        take(pp, mp, false);
    }
    return false;
}

void retake_start(void)
{
    at_store(&retake.said, 0, RELAXED);
    at_store(&retake.denied, false, RELAXED);
    at_store(&retake.blind, false, RELAXED);
    retake.keen_until = 0;
    lock(&retake.lock);
    keep_reserve_locked();
    unlock(&retake.lock);
    if (at_load(&fence_light_is_full, RELAXED)) {
        say_denied("no membarrier", ENOSYS);
    }
}

void retake_stop(void)
{
    lock(&retake.lock);
    if (retake.reserve >= 0) {
        close(retake.reserve);
        retake.reserve = -1;
    }
    unlock(&retake.lock);
}
