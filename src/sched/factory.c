/* SPDX-License-Identifier: MIT */
/*
 * The factory: the one thread that makes threads, and does what else needs malloc on behalf of
 * those who must not call it (sysmon, later signal handlers: the code they interrupt may hold
 * malloc's lock).
 *
 * A request is a P without an M, on the list sched.want_m; the new M is born with that P.
 * If a thread can't be made the P goes to a sleeping M or becomes idle again: fewer threads do the
 * work, and nobody asks again for a moment.
 */
#include "sched/sched.h"

#define RETRY_AFTER ((int64_t)100 * 1000 * 1000)

static struct {
    pthread_t thread;
    at_u32 word; /* ++ for each request; futex */
    at_u32 stop;
    at_u32 procs; /* wanted number of Ps, or 0 */
    at_u32 said;  /* that threads can't be made */
} factory;

static void kick(void)
{
    at_add(&factory.word, 1, RELEASE);
    futex_wake(&factory.word, 1);
}

void factory_want_locked(struct p *pp, struct g *gp, bool spinning)
{
    pp->handoff_g = gp;
    pp->handoff_spinning = spinning;
    pp->link = sched.want_m;
    sched.want_m = pp;
    sched.nwant_m++;
    kick();
}

void factory_want_procs(int n)
{
    at_store(&factory.procs, (uint32_t)n, RELAXED);
    kick();
}

/* No thread: let an M that sleeps have the P, or nobody. */
static void give_up(struct p *pp, struct g *gp, bool spinning, int err)
{
    if (!at_xchg(&factory.said, 1, RELAXED)) {
        say("pirn: cannot make a thread (%s): going on with fewer\n", strerrordesc_np(-err));
    }
    lock(&sched.lock);
    sched.no_threads_until = now_ns() + RETRY_AFTER;
    struct m *mp = midle_get_locked();
    if (mp) {
        mp->nextp = pp;
        mp->nextg = gp;
        mp->spinning = spinning;
    } else {
        if (gp) {
            globq_put_locked(&sched.globq, gp);
        }
        p_put_back_locked(pp);
        if (spinning) {
            at_store(&sched.nspinning, 0, RELAXED); /* under the lock, as in wake_one */
        }
    }
    unlock(&sched.lock);
    if (mp) {
        note_post(&mp->park);
    }
}

static bool serve_one(void)
{
    lock(&sched.lock);
    struct p *pp = sched.want_m;
    if (pp) {
        sched.want_m = pp->link;
        pp->link = NULL;
    }
    unlock(&sched.lock);
    if (!pp) {
        return false;
    }
    struct g *gp = pp->handoff_g;
    bool spinning = pp->handoff_spinning;
    int err = m_start(pp, gp, spinning);
    if (err) {
        give_up(pp, gp, spinning, err);
    }
    lock(&sched.lock);
    sched.nwant_m--;          /* only now: till here the P is on its way to somebody */
    deadlock_check_locked(0); /* the new M may be asleep already, and looked too early */
    unlock(&sched.lock);
    return true;
}

static void *factory_main(void *arg)
{
    (void)arg;
    for (;;) {
        uint32_t seen = at_load(&factory.word, ACQUIRE);
        if (at_load(&factory.stop, RELAXED)) {
            return NULL;
        }
        uint32_t procs = at_xchg(&factory.procs, 0, RELAXED);
        if (procs) {
            p_resize((int)procs, NULL, true);
        }
        if (!serve_one()) {
            futex_wait(&factory.word, seen, INT64_MAX);
        }
    }
}

int factory_start(void)
{
    at_store(&factory.stop, 0, RELAXED);
    at_store(&factory.procs, 0, RELAXED);
    at_store(&factory.said, 0, RELAXED);
    return thread_create(&factory.thread, "pirn-factory", factory_main, NULL, true);
}

void factory_stop(void)
{
    at_store(&factory.stop, 1, RELAXED);
    kick();
    pthread_join(factory.thread, NULL);
}
