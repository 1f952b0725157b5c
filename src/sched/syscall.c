/* SPDX-License-Identifier: MIT */
/*
 * Calls that may block the thread, and say so.
 *
 * pirn_blocking_begin keeps the P and says M_ANNOUNCED with one store; pirn_blocking_end takes that back
 * with one CAS. In between sysmon may take the P, if others have work for it (retake.c), or if it takes long.
 * pirn_blocking gives the P away at once.
 *
 * Coming back without a P, a thread takes its old one if that is idle, or another; else the goroutine
 * goes to the global queue and the thread sleeps, to be used again. Nothing binds the two here: the
 * program was told that it may come back on another thread.
 */
#include <errno.h>

#include "sched/switch.h"

static void commit_queue(struct m *mp, struct g *gp)
{
    (void)mp;
    at_store(&gp->status, G_RUNNABLE, RELAXED);
    lock(&sched.lock);
    globq_put_locked(&sched.globq, gp);
    unlock(&sched.lock);
    wake_for(NULL);
}

/* In the runtime, without a P. */
static void come_back(struct m *mp, struct p *old)
{
    struct g *gp = mp->curg;
    lock(&sched.lock);
    struct p *pp = m_told_to_stop(mp) ? NULL : p_take_locked(old);
    unlock(&sched.lock);
    if (pp) {
        p_bind(mp, pp);
    } else if (m_told_to_stop(mp)) {
        m_leave_for_good(mp);
    } else if (gp->flags & G_BOUND) {
        m_regain(mp);
    } else {
        switch_away(mp, gp, NULL, commit_queue);
    }
}

EXPORT void pirn_blocking_begin(void)
{
    struct m *mp = enter();
    if (unlikely(!mp)) {
        return; /* a thread of the program's own has nothing to give away */
    }
    at_count(&mp->nblocking, 1);
    bool work = p_has_queued(mp->p);
    at_store(&mp->where, M_ANNOUNCED, RELEASE); /* [B1] */
    if (unlikely(work)) {
        sysmon_may_block();
    }
}

static COLD _Noreturn void not_begun(void)
{
    misuse("pirn_blocking_end without pirn_blocking_begin");
}

/* Its P is gone. Out of line, as all that is rare: the two ends together are some nanoseconds. */
static NOINLINE void end_taken(struct m *mp, uint32_t where)
{
    not_forked();
    if (where != M_TAKEN) {
        not_begun();
    }
    int saved = errno; /* of the call: the thread may be another */
    struct p *old = mp->p;
    mp->p = NULL;
    at_store(&mp->where, M_RUNTIME, RELAXED);
    come_back(mp, old);
    errno = saved;
    leave();
}

static NOINLINE void end_attentive(struct m *mp)
{
    not_forked();
    if (m_told_to_stop(mp)) {
        m_leave_for_good(mp);
    }
    leave();
}

EXPORT void pirn_blocking_end(void)
{
    struct m *mp = getm();
    uint32_t where = M_ANNOUNCED;
    if (unlikely(!mp)) {
        not_forked();
        return;
    }
    if (unlikely(!at_cas(&mp->where, &where, M_RUNTIME, ACQUIRE, ACQUIRE))) { /* [B1] */
        end_taken(mp, where);
    } else if (unlikely(at_load(&mp->attention, RELAXED))) {
        end_attentive(mp);
    } else {
        at_store(&mp->where, M_USER, RELEASE); /* [E2], as leave() */
    }
}

EXPORT void *pirn_blocking(void *(*fn)(void *), void *arg)
{
    struct m *mp = enter();
    if (!mp) {
        return fn(arg);
    }
    struct p *old = mp->p;
    lock(&sched.lock);
    struct m *heir = p_let_go_locked(mp, NULL);
    unlock(&sched.lock);
    p_let_go_end(heir);
    at_store(&mp->where, M_GIVEN, RELAXED); /* nobody looks at it any more */
    void *result = fn(arg);
    not_forked();
    int saved = errno;
    at_store(&mp->where, M_RUNTIME, RELAXED);
    come_back(mp, old);
    errno = saved;
    leave();
    return result;
}
