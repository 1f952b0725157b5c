/* SPDX-License-Identifier: MIT */
/*
 * An M on g0 looks for something to run: its own P, the global queue, then the other Ps, and at
 * last it gives up its P and sleeps (idle.c).
 *
 * Victims are visited in random order: start anywhere and walk with a step that has no common
 * factor with the number of Ps, which visits each once.
 *
 * runnext is left to its owner, who will run it next: it is taken only in the last round, and only
 * if the owner's M has made no switch for a few microseconds, that is, if it computes.
 */
#include "sched/sched.h"

#define ROUNDS (PIRN_SMALL ? 1 : 4)
#define RUNNEXT_WAIT 3000 /* ns */
#define SPIN_MOST                                                                                  \
    (PIRN_SMALL ? 1 : 10000) /* ns: longer costs more than it saves when CPUs are few */
#define SPIN_PAUSES 8

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

void walk_begin(struct walk *w, struct rand *r, uint32_t n)
{
    w->n = n;
    w->left = n;
    w->at = rand_below(r, n);
    do {
        w->step = 1 + rand_below(r, n);
    } while (gcd(w->step, n) != 1);
}

bool walk_next(struct walk *w, uint32_t *i)
{
    if (w->left == 0) {
        return false;
    }
    w->left--;
    *i = w->at;
    w->at = (w->at + w->step) % w->n;
    return true;
}

static struct g *steal_runnext(struct p *victim)
{
    struct g *gp = at_load(&victim->runq.next, RELAXED);
    if (!gp || at_load(&victim->status, RELAXED) != P_RUNNING) {
        return NULL;
    }
    uint64_t seq = at_load(&victim->counts.switches, RELAXED);
    for (int64_t until = now_ns() + RUNNEXT_WAIT; now_ns() < until;) {
        at_pause();
        if (at_load(&victim->counts.switches, RELAXED) != seq) {
            return NULL;
        }
    }
    gp = runq_steal_next(&victim->runq, gp);
    if (gp) {
        at_store(&sched.futile, 0, RELAXED); /* waking for runnext pays */
    }
    return gp;
}

static struct g *steal(struct m *mp)
{
    struct p *pp = mp->p;
    struct walk w;
    uint32_t i, stolen;
    int64_t now = 0;
    for (int round = 0; round < ROUNDS; round++) {
        walk_begin(&w, &mp->rand, at_load(&sched.nallp, ACQUIRE));
        while (walk_next(&w, &i)) {
            struct p *victim = at_load(&sched.allp[i], RELAXED);
            if (victim == pp) {
                continue;
            }
            stolen = 1;
            struct g *gp = runq_steal(&pp->runq, &victim->runq, &stolen);
            if (!gp && round == ROUNDS - 1) {
                if (timers_steal(victim, &now) && (gp = next_local(pp))) {
                    return gp;
                }
                gp = steal_runnext(victim);
            }
            if (gp) {
                at_count(&pp->counts.steals, 1);
                at_count(&pp->counts.stolen, stolen);
                at_count(&pp->tick, 1);
                return gp;
            }
        }
    }
    return NULL;
}

/* Something to run that this thread can see: in the global queue or on any P. */
bool work_visible(void)
{
    if (at_load(&sched.globq.size, RELAXED) || signals_pending()) {
        return true;
    }
    bool next_counts = at_load(&sched.futile, RELAXED) == 0;
    uint32_t n = at_load(&sched.nallp, ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct runq *q = &at_load(&sched.allp[i], RELAXED)->runq;
        if (next_counts ? !runq_empty(q) : runq_len(q) > 0) {
            return true;
        }
    }
    return false;
}

/* Lingers for a moment before sleep, one M at a time. */
static struct g *spin(struct m *mp)
{
    if (at_load(&sched.nprocs, RELAXED) == 1 || !spin_begin(mp)) {
        return NULL;
    }
    for (int64_t until = now_ns() + SPIN_MOST; now_ns() < until;) {
        for (int i = 0; i < SPIN_PAUSES; i++) {
            at_pause();
        }
        if (m_told_to_stop(mp)) {
            return NULL;
        }
        if (work_visible()) {
            struct g *gp = next_local(mp->p);
            gp = gp ? gp : steal(mp);
            if (gp) {
                return gp;
            }
        }
    }
    return NULL;
}

static struct g *look_at_network(struct m *mp)
{
    return netpoll_look(mp) ? next_local(mp->p) : NULL;
}

/* Blocks until there is something to run. NULL: the runtime ends. On g0. */
struct g *find_work(struct m *mp)
{
    for (;;) {
        if (unlikely(m_told_to_stop(mp))) {
            return NULL;
        }
        if (unlikely(mp->retires)) {
            wake_all(); /* it may have been about to look again, or to keep the time: [W2] [T2] */
            return NULL;
        }
        struct g *gp = NULL;
        if (mp->p) {
            if ((gp = mp->nextg)) {
                mp->nextg = NULL;
            } else if (unlikely(at_load(&mp->p->retire, RELAXED))) {
                p_retire_g0(mp);
                continue;
            } else {
                if (unlikely(signals_pending())) {
                    signals_deliver_g0();
                }
                timers_look(mp->p);
                if (!(gp = next_local(mp->p)) && !(gp = look_at_network(mp)) && !(gp = steal(mp))) {
                    gp = spin(mp);
                }
            }
        }
        if (gp) {
            if (mp->spinning) {
                spin_end(mp);
            } else {
                wake_for_more(mp->p); /* it may have stolen more than it runs */
            }
            return gp;
        }
        m_idle(mp);
    }
}
