/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that stay on one thread: for libraries that keep their state by thread.
 *
 * A locked goroutine is bound (G_BOUND) as one that was preempted, but for as long as it likes. When it
 * parks, its thread gives the P away and sleeps until somebody comes to the goroutine (m_wait_locked in
 * idle.c); nothing else runs there. If it ends without unlocking, the thread ends too: its state is
 * nobody else's business.
 *
 * Goroutine 1 goes to the thread of pirn_run, which is the process's first in most programs, and the only
 * one that some libraries run on. That thread waits in pirn_run like any foreign thread; to be visited it
 * is woken, becomes an M of its own (`host`) for as long as goroutine 1 is locked, and then waits on.
 * Unlocked, goroutine 1 leaves it at its next park or yield: nobody else runs there.
 *
 * host.visitor is set under sched.lock, by goroutine 1 from the stack of the M that it leaves, and the note
 * on which the thread waits is posted then. That note is posted once more when goroutine 1 has ended; the
 * two can't meet, since it does not end while it is on its way.
 */
#include <signal.h>

#include "sched/switch.h"

static struct {
    struct m m;
    void *lo; /* the thread's stack */
    size_t size;
    /* under sched.lock */
    struct note *asleep_on; /* the thread waits there; NULL: not yet */
    struct g *visitor;      /* goroutine 1, on its way */
    struct p *p;            /* with it */
} host;

static __thread bool is_host __attribute__((tls_model("initial-exec")));

/* --- the thread of pirn_run ------------------------------------------------------------------------ */

/* Goroutine 1 of this thread's run may come. */
void visits_allow(void)
{
    is_host = true;
    thread_stack_bounds(&host.lo, &host.size); /* it reads a file, and must not with a P */
}

void visits_bounds(void **lo, size_t *size)
{
    *lo = host.lo;
    *size = host.size;
}

/* The M of the thread of pirn_run comes and goes, and is not in the list. */
struct m *m_first(void)
{
    return &host.m;
}

/* Reports look without the lock: backtrace.c. */
__attribute__((no_sanitize("thread"))) struct m *m_after(const struct m *mp)
{
    return mp == &host.m ? sched.allm : mp->all;
}

void visits_end(void)
{
    is_host = false;
    lock(&sched.lock);
    host.asleep_on = NULL;
    unlock(&sched.lock);
}

static void be_visited(void)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    m_be(&host.m);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* True: goroutine 1 is on its way. Else the thread is about to wait. */
static bool is_wanted(struct note *n)
{
    lock(&sched.lock);
    struct g *gp = host.visitor;
    host.visitor = NULL;
    host.asleep_on = gp ? NULL : n;
    if (gp) { /* it counts as an M meanwhile */
        note_clear(n);
        at_add(&sched.nforeign_parked, (uint32_t)-1, RELAXED);
        sched.nm++;
        m_init(&host.m);
        host.m.nextg = host.m.lockedg = gp;
        host.m.visits = true;
        rand_seed(&host.m.rand, (uint64_t)now_ns());
        p_bind(&host.m, host.p);
    }
    unlock(&sched.lock);
    return gp;
}

/* A foreign thread waits for n: returns when it is posted, for good. */
void visit_wait(struct note *n)
{
    while (unlikely(is_host)) {
        if (is_wanted(n)) {
            be_visited();
            lock(&sched.lock);
            sched.nm--;
            host.m.thread_pointer = NULL; /* nobody is there: debug/leakmem.c */
            at_add(&sched.nforeign_parked, 1, RELAXED);
            deadlock_check_locked(0);
            unlock(&sched.lock);
            continue;
        }
        note_wait(n);
        lock(&sched.lock);
        bool visited = host.visitor;
        unlock(&sched.lock);
        if (!visited) {
            return;
        }
    }
}

/* The M that goroutine 1 has left gives its P to the host. */
static void commit_visit(struct m *mp, struct g *gp)
{
    lock(&sched.lock);
    at_store(&gp->status, G_RUNNABLE, RELAXED);
    host.visitor = gp;
    host.p = p_unbind(mp);
    struct note *n = host.asleep_on;
    unlock(&sched.lock);
    if (n) {
        note_post(n);
    }
}

/* --- locking ---------------------------------------------------------------------------------------- */

EXPORT void pirn_lock_thread(void)
{
    struct m *mp = enter();
    if (!mp) {
        return; /* a thread is always locked to itself */
    }
    struct g *gp = mp->curg;
    struct gextra *x = g_extra(gp);
    if (!x) {
        fatal("out of memory: cannot lock a goroutine to its thread");
    }
    if (x->locked++ == 0) {
        gp->flags |= G_BOUND;
        bool must_go = gp->flags & G_MAIN && mp != &host.m;
        gp->run.m = must_go ? &host.m : mp;
        if (must_go) {
            switch_away(mp, gp, NULL, commit_visit);
        } else {
            mp->lockedg = gp;
        }
    }
    leave();
}

EXPORT void pirn_unlock_thread(void)
{
    struct m *mp = enter();
    if (!mp) {
        return;
    }
    struct g *gp = mp->curg;
    if (gp->extra && gp->extra->locked && --gp->extra->locked == 0 && !mp->visits) {
        gp->flags &= (uint16_t)~G_BOUND;
        mp->lockedg = NULL;
    }
    leave();
}

/* A goroutine that is bound leaves its thread's stack. */
void bound_leaves(struct m *mp, struct g *gp)
{
    if (mp->visits && gp->extra->locked == 0) {
        gp->flags &= (uint16_t)~G_BOUND;
        mp->lockedg = NULL;
    }
}
