/* SPDX-License-Identifier: MIT */
/*
 * Sleeping Ms, idle Ps, and waking them: the protocol that must neither lose a wake-up nor wake
 * in vain.
 *
 * Who submits work:   put it on a queue;            [W1] full fence; an idle P and no spinner? wake.
 * Who goes to sleep:  put P and M on the idle lists,
 *                     stop spinning;                [W2] full fence; look at every queue again.
 * Who stops spinning,
 * or has moved work,
 * because it found
 * work:               stop spinning;                [W3] full fence; more work and an idle P? wake.
 *
 * With a full fence on both sides at least one of the two sees the other's store: either the
 * submitter sees the idle P (or that nobody spins any more), or the sleeper sees the work. An
 * atomic read-modify-write in place of one of the fences loses wake-ups.
 *
 * A submitter that sees a spinner leaves the work to it: the spinner either takes work, and then
 * looks for more at [W3], or sleeps, and then looks again at [W2]. At most one M spins, for at
 * most 10 us, since a spinner takes a CPU from those who work when CPUs are few.
 *
 * On the only P there is nobody to wake, so it has no fence (p_is_alone).
 *
 * Both lists change together under sched.lock: an M on the idle list is taken by a waker, who
 * gives it a P and posts its note, or takes itself off when it finds work at [W2]. So the number
 * of threads does not grow by races between the two.
 *
 * Work that is only in the submitter's runnext is special: the submitter mostly runs it itself
 * within nanoseconds (spawn and wait, ping-pong), and waking another CPU costs tens of
 * microseconds. sched.futile says that the last M that was woken found nothing; until one steals a
 * runnext again, a P wakes for its runnext alone once every 10 ms at most, and sleepers don't count
 * runnext as work. Sysmon looks after a runnext that its P does not get to (sysmon.c).
 *
 * Differs from Go: every sleeper looks again, not only the last spinner, and the M goes on its
 * list before that look.
 */
#include "sched/sched.h"

/* --- the lists, under sched.lock --------------------------------------------------------------- */

void pidle_put_locked(struct p *pp)
{
    at_store(&pp->status, P_IDLE, RELAXED);
    pp->link = sched.pidle;
    sched.pidle = pp;
    at_count(&sched.npidle, 1);
}

struct p *pidle_get_locked(void)
{
    struct p *pp = sched.pidle;
    if (pp) {
        sched.pidle = pp->link;
        pp->link = NULL;
        at_count(&sched.npidle, (uint32_t)-1);
        sched.ntaken++;
        at_store(&pp->status, P_RUNNING, RELAXED);
        sysmon_kick(); /* [S2]: it may sleep only while no P runs */
    }
    return pp;
}

/* mp has pp now: a new slice. But those who give it to each other's threads again and again are not to keep the
 * ring waiting. */
void p_bind(struct m *mp, struct p *pp)
{
    mp->p = pp;
    at_store(&pp->m, mp, RELEASE); /* [E3] */
    at_count(&pp->tick, 1);
    if (at_load(&pp->slice_over, RELAXED) != SLICE_RING_STARVES) {
        at_store(&pp->slice_over, SLICE_GOES_ON,
                 RELAXED); /* else the ring's turn would never come after a preemption */
    }
}

/* Before another has it: retake.c would take it from the wrong one. */
struct p *p_unbind(struct m *mp)
{
    struct p *pp = mp->p;
    mp->p = NULL;
    at_store(&pp->m, NULL, RELAXED);
    return pp;
}

/* The one that it had before, if that is idle. */
static struct p *pidle_get_this_locked(struct p *pp)
{
    struct p **at = &sched.pidle;
    while (*at && *at != pp) {
        at = &(*at)->link;
    }
    if (!*at) {
        return NULL;
    }
    *at = pp->link;
    pp->link = sched.pidle;
    sched.pidle = pp;
    return pidle_get_locked();
}

/* For a thread that has a goroutine and no P. One that waits for a thread to be made will do too: who
 * makes it may be waiting for what this goroutine holds. */
struct p *p_take_locked(struct p *old)
{
    if (sched.stopped) {
        return NULL;
    }
    struct p *pp =
        old && at_load(&old->status, RELAXED) == P_IDLE ? pidle_get_this_locked(old) : NULL;
    pp = pp ? pp : pidle_get_locked();
    return pp ? pp : factory_take_back_locked();
}

/* mp keeps the time until then, or no more: timers.c. */
static void keep_until_locked(struct m *mp, int64_t when)
{
    if (mp->keeps == when) {
        return;
    }
    if (when != PIRN_NEVER || (int64_t)at_load(&sched.keeper_until, RELAXED) == mp->keeps) {
        at_store(&sched.keeper_until, (uint64_t)when, RELAXED);
    }
    mp->keeps = when;
}

static void midle_put_locked(struct m *mp)
{
    mp->idle = true;
    mp->idle_since = coarse_now();
    mp->keeps = PIRN_NEVER;
    mp->idle_prev = NULL;
    mp->idle_next = sched.midle;
    if (sched.midle) {
        sched.midle->idle_prev = mp;
    }
    sched.midle = mp;
    sched.nmidle++;
}

void midle_take_locked(struct m *mp)
{
    *(mp->idle_prev ? &mp->idle_prev->idle_next : &sched.midle) = mp->idle_next;
    if (mp->idle_next) {
        mp->idle_next->idle_prev = mp->idle_prev;
    }
    mp->idle = false;
    sched.nmidle--;
    keep_until_locked(mp, PIRN_NEVER);
}

struct m *midle_get_locked(void)
{
    struct m *mp = sched.midle;
    if (mp) {
        midle_take_locked(mp);
    }
    return mp;
}

/* All threads are told to stop, and woken without a P: they take nothing any more. */
static bool runtime_ends(void)
{
    return unlikely(at_load(&sched.life, RELAXED) == LIFE_STOPPING);
}

static struct m *set_heir_locked(struct m *mp, struct p *pp, struct g *gp)
{
    if (mp->locked_waits) {
        mp->locked_waits = false;
        sched.nmlocked--;
    }
    mp->nextp = pp;
    mp->nextp_g = gp;
    return mp;
}

/*
 * Who gets pp, and runs gp first if that is not NULL: the thread to which gp is bound; one that sleeps; or
 * one whose goroutine waits for a P. (That must be: if all threads are taken, and the one that would
 * make another waits for malloc's lock, then the owner of that lock may be such a goroutine.) The caller
 * posts its note after unlock. NULL: there is none.
 */
struct m *p_heir_locked(struct p *pp, struct g *gp)
{
    struct m *mp;
    if (runtime_ends()) {
        return NULL;
    }
    if (gp && gp->flags & G_BOUND) {
        return set_heir_locked(gp->run.m, pp, gp);
    }
    if ((mp = midle_get_locked())) {
        return set_heir_locked(mp, pp, gp);
    }
    struct g *bound = globq_get_bound_locked(&sched.globq);
    if (!bound) {
        return NULL;
    }
    if (gp) {
        globq_put_locked(&sched.globq, gp);
    }
    return set_heir_locked(bound->run.m, pp, bound);
}

/* The same, but a new thread is made for it if there is none. */
struct m *p_pass_on_locked(struct p *pp, struct g *gp)
{
    struct m *mp = p_heir_locked(pp, gp);
    if (!mp) {
        factory_want_locked(pp, gp, false);
    }
    return mp;
}

/* mp gives up its P: to somebody, if there is work for it. Then p_let_go_end, without the lock. */
struct m *p_let_go_locked(struct m *mp, struct g *gp)
{
    struct p *pp = p_unbind(mp);
    if (gp || p_has_work(pp) || at_load(&pp->retire, RELAXED)) {
        return p_pass_on_locked(pp, gp);
    }
    pidle_put_locked(pp);
    return NULL;
}

void p_let_go_end(struct m *heir)
{
    if (heir) {
        m_post(heir);
        return;
    }
    wake_all(); /* as one that goes to sleep: [W2] [T2] */
}

/* Rule R4: what would run here if the goroutine that has the P let go. */
bool p_has_work(struct p *pp)
{
    if (!runq_empty(&pp->runq) || at_load(&sched.globq.size, RELAXED)
        || at_load(&pp->timers_due, RELAXED)) {
        return true;
    }
    int64_t next = (int64_t)at_load(&pp->timers.next, RELAXED);
    return next != PIRN_NEVER && next <= now_ns();
}

/* Gives pp to a sleeping M, whose note the caller posts after unlock, or asks the factory for a new one
 * and returns NULL. */
static struct m *give_locked(struct p *pp)
{
    struct m *mp = NULL;
    struct g *bound;
    bool ends = runtime_ends(); /* then it rests with the factory */
    if (!ends && (mp = midle_get_locked())) {
        set_heir_locked(mp, pp, NULL);
        mp->spinning = true;
    } else if (!ends && (bound = globq_get_bound_locked(&sched.globq))) {
        at_store(&sched.nspinning, 0, RELAXED); /* under the lock, as in wake_one */
        mp = set_heir_locked(bound->run.m, pp, bound);
    } else {
        factory_want_locked(pp, NULL, true);
    }
    return mp;
}

/* --- waking ------------------------------------------------------------------------------------ */

/* True: it went to a goroutine that has a thread, and looks for no more. */
static bool wake_once(struct p *pp)
{
    uint32_t none = 0;
    if (!at_cas(&sched.nspinning, &none, 1, RELAXED, RELAXED)) {
        return false;
    }
    struct m *mp = NULL;
    lock(&sched.lock);
    bool lacks = !sched.midle && !sched.globq.bound.n && sched.no_threads_until != 0
                 && now_ns() < sched.no_threads_until;
    struct p *idle = lacks || sched.stopped ? NULL : pidle_get_locked();
    if (idle) {
        mp = give_locked(idle);
    } else {
        /* Under the lock: whoever makes a P idle after this has not seen the 1, nor has any
         * submitter that sees that P. */
        at_store(&sched.nspinning, 0, RELAXED);
    }
    bool bound = mp && mp->nextp_g;
    unlock(&sched.lock);
    if (unlikely(lacks)) {
        sysmon_kick(); /* it asks again later */
    }
    if (!idle) {
        return false;
    }
    if (pp) {
        at_count(&pp->counts.wakes, 1);
    }
    if (mp) {
        m_post(mp);
    }
    return bound;
}

/* Work that others could do, and nobody who looks for it. */
static bool more_to_do(void)
{
    at_fence(SEQ_CST); /* [W3] */
    return at_load(&sched.npidle, RELAXED) && !at_load(&sched.nspinning, RELAXED)
           && (work_visible() || timers_unattended());
}

/* pp is the waker's own, for its counters, or NULL. Who wakes a bound goroutine owes the others what a
 * spinner does that has found work: without it each P would wait for the next look of sysmon. */
COLD void wake_one(struct p *pp)
{
    while (wake_once(pp) && more_to_do()) {
    }
}

/* Ps have become idle, and no thread of theirs goes to sleep, and looks again. */
void wake_all(void)
{
    at_fence(SEQ_CST); /* [W2] [T2] */
    if (at_load(&sched.npidle, RELAXED) && !at_load(&sched.nspinning, RELAXED)
        && (work_visible() || timers_unkept() || netpoll_unattended())) {
        wake_one(NULL);
    }
}

/* While such wakes find nothing there is one for each look of sysmon, every 10 ms. */
static bool leave_out(struct p *pp)
{
    int64_t now = coarse_now();
    if (!at_load(&sched.futile, RELAXED) || pp->woke_at != now) {
        pp->woke_at = now;
        return false;
    }
    return true;
}

COLD void wake_slow(struct p *pp, bool only_runnext)
{
    if (!only_runnext || !leave_out(pp)) {
        wake_one(pp);
    }
}

/* --- spinning ---------------------------------------------------------------------------------- */

bool spin_begin(struct m *mp)
{
    uint32_t none = 0;
    if (!mp->spinning) {
        mp->spinning = at_cas(&sched.nspinning, &none, 1, RELAXED, RELAXED);
    }
    return mp->spinning;
}

/* Work was moved from one queue to another, and in between could be seen in neither. */
void wake_for_more(struct p *pp)
{
    if (more_to_do()) {
        wake_one(pp);
    }
}

/* The spinner has found work; there may be more. */
void spin_end(struct m *mp)
{
    mp->spinning = false;
    at_store(&sched.nspinning, 0, RELAXED);
    wake_for_more(mp->p);
}

/* --- sleeping ---------------------------------------------------------------------------------- */

void m_post(struct m *mp)
{
    at_store(&mp->park.posted, 1, RELEASE); /* as note_post */
    at_fence(SEQ_CST);                      /* [P1] */
    if (unlikely(at_load(&mp->polls, RELAXED))) {
        netpoll_break();
    } else {
        futex_wake(&mp->park.posted, 1);
    }
}

/* An idle P; the one whose poller is ready, if that is idle. */
static struct p *pidle_get_for_locked(const struct m *mp)
{
    struct p *pp = mp->npolled ? at_load(&sched.allp[mp->polled[0]], RELAXED) : NULL;
    pp = pp && at_load(&pp->status, RELAXED) == P_IDLE ? pidle_get_this_locked(pp) : NULL;
    return pp ? pp : pidle_get_locked();
}

/* Work was seen: come back with an idle P. False: taken by a waker already, or no P is left. */
static bool come_back(struct m *mp)
{
    bool back = false;
    lock(&sched.lock);
    if (mp->idle && sched.pidle && !sched.stopped) {
        midle_take_locked(mp);
        p_bind(mp, pidle_get_for_locked(mp));
        back = true;
    } else if (mp->idle) {
        keep_until_locked(mp, PIRN_NEVER); /* all Ps run, and look themselves */
    }
    unlock(&sched.lock);
    if (back) {
        spin_begin(mp); /* as if it had never stopped: it owes the others [W3] */
    }
    return back;
}

/* Keeps the time, if somebody must and nobody does. Until when. */
static int64_t keep_time(struct m *mp)
{
    int64_t when = timers_next();
    if (when == PIRN_NEVER || when >= (int64_t)at_load(&sched.keeper_until, RELAXED)) {
        return PIRN_NEVER;
    }
    lock(&sched.lock);
    if (mp->idle && sched.pidle && !sched.stopped
        && when < (int64_t)at_load(&sched.keeper_until, RELAXED)) {
        keep_until_locked(mp, when);
    }
    when = mp->keeps;
    unlock(&sched.lock);
    return when;
}

/* After the note: what was given with it. No P: told to stop, or to end. */
static void take_given(struct m *mp)
{
    note_clear(&mp->park);
    struct p *pp = mp->nextp;
    mp->nextg = mp->nextp_g;
    mp->nextp = NULL;
    mp->nextp_g = NULL;
    if (pp) {
        p_bind(mp, pp);
    }
}

/*
 * Sleeps in the poller, if somebody must and nobody does. One at a time: of two, the wrong one might be woken
 * by the eventfd. So who has the place keeps it until it has left, also when it was taken off the idle
 * list meanwhile. [P4] It gives up the place before it looks for an idle P; who goes to sleep makes its P
 * idle before it looks at the place. Both with sched.lock in between: so either it finds the P, or the
 * other the place.
 */
static bool keep_poller(struct m *mp)
{
    if (likely(!netpoll_unattended())) {
        return false;
    }
    lock(&sched.lock);
    bool mine = mp->idle && sched.pidle && !sched.stopped && !at_load(&sched.poll_m, RELAXED);
    if (mine) {
        at_store(&sched.poll_m, mp, RELAXED);
    }
    unlock(&sched.lock);
    return mine;
}

/* True: its note was posted. False: there may be something to do. */
static bool sleep_once(struct m *mp)
{
    int64_t until = keep_time(mp);
    if (likely(!keep_poller(mp))) {
        return note_wait_until(&mp->park, until);
    }
    bool posted = netpoll_sleep(mp, until);
    at_store(&sched.poll_m, NULL, RELAXED); /* [P4] */
    return posted;
}

/* Until it is given a P, or, as the keeper of the time or from the poller, takes one. */
static void sleep_until_given(struct m *mp)
{
    while (!sleep_once(mp)) {
        if (come_back(mp)) {
            return;
        }
        at_fence(SEQ_CST); /* [T2]; a mutant that survives: sched.lock was taken just before */
    }
    take_given(mp);
}

/* Gives up the P, if it has one, and sleeps until it is given one. On g0. */
void m_idle(struct m *mp)
{
    struct p *pp = mp->p;
    lock(&sched.lock);
    if (m_told_to_stop(mp)
        || (pp && (at_load(&sched.globq.size, RELAXED) || at_load(&pp->retire, RELAXED)))) {
        unlock(&sched.lock);
        return;
    }
    if (pp) {
        pidle_put_locked(p_unbind(mp));
    }
    bool spinning = mp->spinning; /* once on the list, it belongs to the waker */
    mp->spinning = false;
    midle_put_locked(mp);
    unlock(&sched.lock);
    if (spinning) {
        at_store(&sched.nspinning, 0, RELAXED);
        at_store(&sched.futile, 1, RELAXED);
    }
    at_fence(SEQ_CST); /* [W2] */
    if (work_visible() && come_back(mp)) {
        return;
    }
    if (at_load(&sched.npidle, RELAXED) == at_load(&sched.nprocs, RELAXED)) {
        lock(&sched.lock);
        deadlock_check_locked(0);
        unlock(&sched.lock);
    }
    sleep_until_given(mp);
}

/* Passes the P, with gp to run first, to another M, and sleeps. On g0. */
void m_hand_off(struct m *mp, struct g *gp)
{
    lock(&sched.lock);
    if (m_told_to_stop(mp)) {
        unlock(&sched.lock);
        return;
    }
    struct m *heir = p_pass_on_locked(p_unbind(mp), gp);
    midle_put_locked(mp);
    unlock(&sched.lock);
    if (heir) {
        m_post(heir);
    }
    sleep_until_given(mp);
}

/* --- locked threads: lockthread.c ----------------------------------------------------------------- */

static void check_deadlock_locked(void)
{
    if (at_load(&sched.npidle, RELAXED) == at_load(&sched.nprocs, RELAXED)) {
        deadlock_check_locked(0);
    }
}

/* Its goroutine has parked: the P goes to others until it is that one's turn again. On g0. */
void m_wait_locked(struct m *mp)
{
    struct m *heir = NULL;
    lock(&sched.lock);
    if (m_told_to_stop(mp)) {
        unlock(&sched.lock);
        return;
    }
    struct g *gp = mp->nextg;
    mp->nextg = NULL;
    if (mp->p) {
        heir = p_let_go_locked(mp, gp);
    }
    /* It may have been given a P already, by one who got to the goroutine before this thread got here. */
    if (!mp->nextp) {
        mp->locked_waits = true;
        sched.nmlocked++;
        check_deadlock_locked();
    }
    unlock(&sched.lock);
    p_let_go_end(heir);
    note_wait(&mp->park);
    take_given(mp);
}

/* Its goroutine has ended. The thread may be in any state, and ends too. */
void m_end_locked(struct m *mp)
{
    lock(&sched.lock);
    struct g *gp = mp->nextg;
    mp->nextg = NULL;
    struct m *heir = mp->p ? p_let_go_locked(mp, gp) : NULL;
    unlock(&sched.lock);
    p_let_go_end(heir);
}
