/* SPDX-License-Identifier: MIT */
/*
 * The factory: the one thread that makes threads, and does what else needs malloc on behalf of
 * those who must not call it (sysmon, later signal handlers: the code they interrupt may hold
 * malloc's lock).
 *
 * A request is a P without an M, on the list sched.want_m; a new M takes it from there. (Another who
 * needs a P may be faster.) If a thread can't be made the P goes to a sleeping M or becomes idle again: fewer threads do the
 * work, and nobody asks again for a moment. Then sysmon does, if something is left to do: all other
 * threads may block, and wait for just that.
 */
#include "sched/sched.h"

#define RETRY_AFTER ((int64_t)100 * 1000 * 1000)

static struct {
    pthread_t thread;
    at_u32 word; /* ++ for each request; futex */
    at_u32 stop;
    at_u32 procs;     /* wanted number of Ps, or 0 */
    at_u32 io;        /* threads of io/ are wanted */
    at_u32 said;      /* that threads can't be made */
    int64_t spare_at; /* when the last was asked for; under sched.lock */
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

static struct p *take_locked(void)
{
    struct p *pp = sched.want_m;
    sched.want_m = pp->link;
    pp->link = NULL;
    sched.nwant_m--;
    return pp;
}

/* A P that waits for a thread gets on without. */
struct p *factory_take_back_locked(void)
{
    struct p *pp = sched.want_m ? take_locked() : NULL;
    if (pp) {
        if (pp->handoff_g) {
            globq_put_locked(&sched.globq, pp->handoff_g);
        }
        if (pp->handoff_spinning) {
            at_store(&sched.nspinning, 0, RELAXED); /* under the lock, as in wake_one */
        }
    }
    return pp;
}

/*
 * One more thread, to run the others while one is preempted. Up to max(64, 4 * procs) at once; from
 * there to a quarter of the limit one in a second: many that compute for a while end sooner than that,
 * and those that never end must not keep the rest from running.
 */
void factory_want_spare_locked(void)
{
    uint64_t quick = max_u64(64, 4 * at_load(&sched.nprocs, RELAXED));
    uint64_t most = (uint64_t)sched.config.max_threads / 4;
    int64_t now = now_ns();
    if (sched.want_spare || sched.nm >= most || now < sched.no_threads_until
        || (sched.nm >= quick && now < factory.spare_at + PIRN_SEC)) {
        return;
    }
    factory.spare_at = now;
    sched.want_spare = 1;
    kick();
}

void factory_join_locked(struct m *mp)
{
    mp->idle_next = sched.mdead;
    sched.mdead = mp;
    kick();
}

void factory_want_io(void)
{
    at_store(&factory.io, 1, RELAXED);
    kick();
}

void factory_want_procs(int n)
{
    at_store(&factory.procs, (uint32_t)n, RELAXED);
    kick();
}

static void say_no_threads(int err)
{
    if (!at_xchg(&factory.said, 1, RELAXED)) {
        say("pirn: cannot make a thread (%s): going on with fewer\n", strerrordesc_np(-err));
    }
}

/* No thread: let another have the P that waits, or nobody. */
static void give_up(int err)
{
    struct m *mp = NULL;
    say_no_threads(err);
    lock(&sched.lock);
    sched.nborn--;
    sched.no_threads_until = now_ns() + RETRY_AFTER;
    struct g *gp = sched.want_m ? sched.want_m->handoff_g : NULL;
    bool spinning = sched.want_m && sched.want_m->handoff_spinning;
    struct p *pp = sched.want_m ? take_locked() : NULL;
    if (pp && (mp = p_heir_locked(pp, gp))) {
        if (!mp->nextp_g) {
            mp->spinning = spinning;
            spinning = false;
        }
    } else if (pp) {
        if (gp) {
            globq_put_locked(&sched.globq, gp);
        }
        p_put_back_locked(pp);
    }
    if (spinning) {
        at_store(&sched.nspinning, 0, RELAXED); /* under the lock, as in wake_one */
    }
    deadlock_check_locked(0);
    unlock(&sched.lock);
    if (mp) {
        m_post(mp);
    }
    sysmon_kick(); /* to ask again, in a while */
}

static void make_spare(void)
{
    lock(&sched.lock);
    bool wanted = sched.want_spare;
    unlock(&sched.lock);
    if (!wanted) {
        return;
    }
    int err = m_start(NULL, false);
    if (err) {
        say_no_threads(err);
    }
    lock(&sched.lock);
    sched.want_spare = 0;
    sched.no_threads_until = err ? now_ns() + RETRY_AFTER : 0;
    if (err) {
        deadlock_check_locked(0); /* it was counted for a moment */
    }
    unlock(&sched.lock);
}

static void join_dead(void)
{
    lock(&sched.lock);
    struct m *mp = sched.mdead;
    sched.mdead = NULL;
    unlock(&sched.lock);
    for (struct m *next; mp; mp = next) {
        next = mp->idle_next;
        pthread_join(mp->thread, NULL);
        lock(&sched.lock);
        mp->joined = true;
        unlock(&sched.lock);
    }
}

/* A new thread takes the P that waits for one, if it still does. */
void factory_born(struct m *mp)
{
    lock(&sched.lock);
    sched.nborn--;
    if (sched.want_m) {
        mp->nextg = sched.want_m->handoff_g;
        mp->spinning = sched.want_m->handoff_spinning;
        p_bind(mp, take_locked());
    }
    unlock(&sched.lock);
}

/* The P stays on the list meanwhile: what making a thread waits for, such as malloc's lock, may be in the
 * hands of a goroutine that needs a P. */
static bool serve_one(void)
{
    lock(&sched.lock);
    bool wanted = sched.nwant_m > sched.nborn;
    sched.nborn += wanted;
    unlock(&sched.lock);
    int err = wanted ? m_start(NULL, true) : 0;
    if (err) {
        give_up(err);
    }
    return wanted;
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
        if (at_xchg(&factory.io, 0, RELAXED)) {
            io_make_threads();
        }
        make_spare();
        join_dead();
        if (!serve_one()) {
            futex_wait(&factory.word, seen, INT64_MAX);
        }
    }
}

int factory_start(void)
{
    at_store(&factory.stop, 0, RELAXED);
    at_store(&factory.procs, 0, RELAXED);
    at_store(&factory.io, 0, RELAXED);
    at_store(&factory.said, 0, RELAXED);
    return thread_create(&factory.thread, "pirn-factory", factory_main, NULL, true);
}

void factory_stop(void)
{
    at_store(&factory.stop, 1, RELAXED);
    kick();
    pthread_join(factory.thread, NULL);
}
