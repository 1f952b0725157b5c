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
#define SPARES_AT_ONCE (PIRN_SMALL ? 8u : 64u)
#define TURNS 6 /* that one who was preempted has, before it is taken for one that never ends */

static struct {
    pthread_t thread;
    at_u32 word; /* ++ for each request; futex */
    at_u32 stop;
    at_u32 procs; /* wanted number of Ps, or 0 */
    at_u32 io;    /* threads of io/ are wanted */
    at_u32 said;  /* that threads can't be made */
    /* What had happened when last a thread was asked for, or seen to have come free; under sched.lock. */
    uint64_t seen_switches, seen_preempted;
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

/* True: all that are stopped have had their turns since the last look, and no thread has gone to another
 * goroutine. */
static bool none_comes_free_locked(void)
{
    uint64_t switches = 0, preempted = 0;
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        switches += at_load(&pp->counts.switches, RELAXED);
        preempted += at_load(&pp->counts.preempted, RELAXED);
    }
    if (switches != factory.seen_switches) {
        factory.seen_switches = switches;
        factory.seen_preempted = preempted;
        return false;
    }
    return preempted - factory.seen_preempted >= (uint64_t)TURNS * sched.globq.bound.n;
}

/*
 * More threads, to run the others while some are preempted. (Those that block are not counted: they are no
 * reason to let one compute for ever.) For up to max(64, 4 * procs) one whenever there is none. From there to a
 * quarter of the limit only if none comes free, and then an eighth more: many that compute for a while end,
 * and their threads do for the rest; those that never end must not keep the rest from running, however many
 * they are. A quarter of the limit is left for those that block.
 */
void factory_want_spare_locked(void)
{
    uint64_t stopped = sched.globq.bound.n;
    uint64_t quick = max_u64(SPARES_AT_ONCE, 4UL * at_load(&sched.nprocs, RELAXED));
    uint64_t most = (uint64_t)sched.config.max_threads / 4;
    if (sched.want_spare || stopped >= most || sched.nm >= 3 * most
        || now_ns() < sched.no_threads_until) {
        return;
    }
    if (stopped < quick) {
        sched.want_spare = 1;
    } else if (none_comes_free_locked()) {
        factory.seen_switches = 0; /* from now */
        sched.want_spare = (uint32_t)min_u64(stopped / 8, most - stopped);
    } else {
        return;
    }
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
    sched
        .ntaken++; /* for sysmon, whose last wake this may have been: it was not lost, and it is to try again */
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

static bool make_spare(void)
{
    lock(&sched.lock);
    bool wanted = sched.want_spare;
    unlock(&sched.lock);
    if (!wanted) {
        return false;
    }
    int err = m_start(NULL, false);
    if (err) {
        say_no_threads(err);
    }
    lock(&sched.lock);
    sched.want_spare = err ? 0 : sched.want_spare - 1;
    sched.no_threads_until = err ? now_ns() + RETRY_AFTER : 0;
    if (err) {
        deadlock_check_locked(0); /* it was counted for a moment */
    }
    unlock(&sched.lock);
    return !err;
}

static void join_dead(void)
{
    lock(&sched.lock);
    struct m *mp = sched.mdead;
    sched.mdead = NULL;
    unlock(&sched.lock);
    for (struct m *next; mp; mp = next) {
        next = mp->idle_next;
        /* Destructors of the program's may still run there, for however long: at a later turn. */
        bool over = pthread_tryjoin_np(mp->thread, NULL) == 0;
        lock(&sched.lock);
        mp->joined = over;
        if (!over) {
            mp->idle_next = sched.mdead;
            sched.mdead = mp;
        }
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
        bool made = make_spare();
        join_dead();
        if (!serve_one() && !made) {
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
