/* SPDX-License-Identifier: MIT */
/*
 * Ps: how many there are, and changing that while goroutines run.
 *
 * The world is not stopped. A P is never freed or moved while the runtime runs; sched.allp only
 * grows, and a P that is one too many is marked: an idle one retires at once, a running one at the
 * next switch of its M (p_retire_g0). A thief may visit a retired P at any time: its queue is
 * empty. Growing makes marked Ps stay, revives retired ones, then makes new ones.
 *
 * Retiring empties the P: runnable goroutines go to the global queue in order, free Gs and stacks
 * to their pools.
 */
#include "sched/sched.h"

static struct p *p_new(uint32_t id)
{
    struct p *pp = mem_map(sizeof *pp); /* not from the heap: a lock is held */
    if (pp) {
        pp->id = (int)id;
        at_store(&pp->status, P_RETIRED, RELAXED);
        timers_init(&pp->timers);
        rand_seed(&pp->rand, (uint64_t)now_ns() * (id + 1));
    }
    return pp;
}

/* Makes sure that n Ps exist, retired ones. Fewer if memory ends. */
static void make_ps_locked(uint32_t n)
{
    for (uint32_t i = at_load(&sched.nallp, RELAXED); i < n; i++) {
        struct p *pp = p_new(i);
        if (!pp) {
            return;
        }
        at_store(&sched.allp[i], pp, RELAXED);
        at_store(&sched.nallp, i + 1, RELEASE); /* pairs with ACQUIRE of every walk over allp */
    }
}

static void grow_locked(uint32_t n)
{
    make_ps_locked(n);
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        if (at_load(&sched.nprocs, RELAXED) >= n) {
            return;
        }
        uint32_t retire = at_load(&pp->retire, RELAXED);
        if (retire & P_RETIRE_PROCS) {
            /* its M has not come to it yet */
            at_store(&pp->retire, retire & ~(uint32_t)P_RETIRE_PROCS, RELAXED);
            at_count(&sched.nprocs, 1);
        } else if (at_load(&pp->status, RELAXED) == P_RETIRED) {
            at_count(&sched.nprocs, 1);
            pidle_put_locked(pp);
        }
    }
}

/* Nobody holds the P: its goroutines go to the global queue, in order. */
static void drain_locked(struct p *pp)
{
    struct glist left = {0};
    struct g *gp;
    while ((gp = runq_take_next_owner(&pp->runq)) || (gp = runq_get_owner(&pp->runq))) {
        glist_put(&left, gp);
    }
    globq_put_list_locked(&sched.globq, &left);
}

static void retire_locked(struct p *pp)
{
    drain_locked(pp);
    at_store(&pp->retire, 0, RELAXED);
    at_store(&pp->status, P_RETIRED, RELAXED);
    stack_flush(pp);
    g_flush(pp);
}

static void shrink_locked(uint32_t n, struct p *mine)
{
    while (at_load(&sched.nprocs, RELAXED) > n && sched.pidle) {
        struct p *pp = pidle_get_locked();
        at_count(&sched.nprocs, (uint32_t)-1);
        retire_locked(pp);
    }
    for (uint32_t i = at_load(&sched.nallp, RELAXED); i-- > 0;) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        if (at_load(&sched.nprocs, RELAXED) == n) {
            return;
        }
        uint32_t status = at_load(&pp->status, RELAXED), retire = at_load(&pp->retire, RELAXED);
        if (pp != mine && (status == P_RUNNING || status == P_STOPPED)
            && !(retire & P_RETIRE_PROCS)) {
            at_store(&pp->retire, retire | P_RETIRE_PROCS, RELAXED);
            at_count(&sched.nprocs, (uint32_t)-1);
        }
    }
}

/* follow: on behalf of sysmon, unless the program has set the number meanwhile. */
int p_resize(int n, struct p *mine, bool follow)
{
    uint32_t want = (uint32_t)n;
    bool room = stack_room_for_procs(want) == 0;
    lock(&sched.lock);
    uint32_t before = at_load(&sched.nprocs, RELAXED);
    if (follow && !at_load(&sched.follow_cpus, RELAXED)) {
        unlock(&sched.lock);
        return (int)before;
    }
    if (!follow) {
        at_store(&sched.follow_cpus, 0, RELAXED);
    }
    if (sched.stopped) {
        sched.procs_later = room || want < before ? want : 0;
    } else if (want > before && room) {
        grow_locked(want);
    } else if (want < before) {
        shrink_locked(want, mine);
    }
    unlock(&sched.lock);
    if (want > before && at_load(&sched.life, RELAXED) == LIFE_RUNNING) {
        wake_for(NULL); /* new Ps take part in what is there */
    }
    return (int)before;
}

/* The world is started: what was asked for meanwhile. */
void p_resize_put_off_locked(void)
{
    struct m *mp = getm();
    uint32_t n = sched.procs_later;
    sched.procs_later = 0;
    if (n > at_load(&sched.nprocs, RELAXED)) {
        grow_locked(n);
    } else if (n) {
        shrink_locked(n, mp ? mp->p : NULL);
    }
}

/* A P that found no M. */
void p_put_back_locked(struct p *pp)
{
    uint32_t retire = at_load(&pp->retire, RELAXED);
    if (retire & P_RETIRE_WORLD) { /* no thread for it, while the world stops */
        p_stopped_locked(pp);
    } else if (retire) {
        retire_locked(pp);
    } else {
        drain_locked(pp); /* not empty with PIRN_DEBUG=move only */
        pidle_put_locked(pp);
    }
}

/* The M gives up its P, which is one too many, or the world stops. */
void p_give_up_locked(struct m *mp)
{
    struct p *pp = p_unbind(mp);
    if (at_load(&pp->retire, RELAXED) & P_RETIRE_WORLD) {
        p_stopped_locked(pp);
    } else {
        retire_locked(pp);
    }
}

/* The same on g0, unless that has been taken back. */
void p_retire_g0(struct m *mp)
{
    struct p *pp = mp->p;
    lock(&sched.lock);
    if (!at_load(&pp->retire, RELAXED)) {
        unlock(&sched.lock);
        return;
    }
    p_give_up_locked(mp);
    unlock(&sched.lock);
    /* Without it (a mutant that survives) this M would find the work itself, in m_idle. */
    wake_for(NULL);
}

/* keep: a thread was left behind that may still look at its P. */
void p_fini(bool keep)
{
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        if (!keep) {
            mem_unmap(at_load(&sched.allp[i], RELAXED), sizeof(struct p));
        }
        at_store(&sched.allp[i], NULL, RELAXED);
    }
    at_store(&sched.nallp, 0, RELAXED);
}

EXPORT int pirn_procs(int n)
{
    struct m *mp = enter();
    if (!mp && !foreign_enter()) {
        return 0;
    }
    int before = (int)at_load(&sched.nprocs, RELAXED);
    if (n > 0) {
        before = p_resize(n < PROCS_MAX ? n : PROCS_MAX, mp ? mp->p : NULL, false);
    }
    mp ? leave() : foreign_leave();
    return before;
}
