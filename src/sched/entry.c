/* SPDX-License-Identifier: MIT */
/*
 * In and out of the runtime, and who has the P.
 *
 * A thread is in the runtime from enter() to leave(), and on g0. There it may use its P and take locks
 * of pirn's, it is not preempted, and nobody takes its P. Outside, in the program's own code, it may be
 * stopped at any instruction (preempt.c), or lose its P if it blocks (retake.c, syscall.c). What the
 * program's heap needs is done outside, see heap_alloc.
 *
 * The thread says where it is with plain stores (m.where). Who wants the P of a thread that blocks, and
 * can't ask it, holds sched.lock and
 *     sets M_ASKED;   [E1] heavy fence;   where is M_USER, [E2] and the P is still its own?
 *     M_ASKED to M_LOST by CAS: the decision.
 * while the thread, when it enters,
 *     says M_RUNTIME; [E1] light fence;   M_ASKED? takes it away by CAS. M_LOST: the P is gone.
 * By the fences at least one sees the other's store: either the taker sees M_RUNTIME and gives up, or
 * the thread sees M_ASKED. If both see, the CAS decides. A CAS of the thread that finds neither bit
 * means that the taker has given up: it keeps the P.
 *
 * A thread that has said that it may block (syscall.c) is M_ANNOUNCED; then ANNOUNCED to TAKEN, or to
 * RUNTIME, by CAS is the decision, and no fence is needed.
 *
 * A thread without a P takes one that is idle. Else its goroutine queues, bound to the thread: whoever
 * comes to it passes his P on and the thread goes on where it was, so that thread-local storage, errno
 * and locks stay what they were. There is one note for each P that is passed on: the thread takes the P
 * with the note.
 *
 * [E3] who has a P is stored RELEASE, and loaded ACQUIRE by who looks at the M: it sees an M that is made.
 */
#include <errno.h>
#include <stdlib.h>

#include "sched/switch.h"

/* --- without a P -------------------------------------------------------------------------------- */

/* Until somebody passes a P on; none: the runtime ends. The goroutine stays on this stack. */
void m_wait_for_p(struct m *mp)
{
    struct g *gp = mp->curg;
    at_store(&mp->stands, __builtin_frame_address(0), RELAXED); /* for reports */
    note_wait(&mp->park);
    note_clear(&mp->park);
    at_store(&mp->stands, NULL, RELAXED);
    at_store(&mp->went_on.at, now_ns(), RELAXED);
    at_store(&mp->went_on.used, thread_cpu_ns(0), RELAXED);
    struct p *pp = mp->nextp;
    mp->nextp = NULL;
    mp->nextp_g = NULL;
    if (pp) {
        p_bind(mp, pp);
    }
    if (pp && mp->lockedg != gp) { /* without, it is still in the queue */
        gp->flags &= (uint16_t)~G_BOUND;
    }
    at_store(&gp->status, G_RUNNING, RELAXED);
}

/* The goroutine of this thread queues, bound to it. */
void m_queue_bound_locked(struct m *mp)
{
    struct g *gp = mp->curg;
    gp->flags |= G_BOUND;
    gp->run.m = mp;
    at_store(&gp->status, G_RUNNABLE, RELAXED);
    globq_put_locked(&sched.globq, gp);
}

/* Gives the P to another thread, if there is one, and queues. Then, without the lock, wait_for_p. */
struct m *m_give_way_locked(struct m *mp)
{
    struct p *pp = mp->p;
    struct m *heir = p_heir_locked(pp, NULL);
    if (heir) {
        p_unbind(mp);
        m_queue_bound_locked(mp);
    }
    return heir;
}

/* Comes back with a P. False: the runtime ends. */
static bool regain(struct m *mp, struct p *old)
{
    lock(&sched.lock);
    if (m_told_to_stop(mp)) {
        unlock(&sched.lock);
        return false;
    }
    struct p *pp = p_take_locked(old);
    if (!pp) {
        m_queue_bound_locked(mp);
    }
    unlock(&sched.lock);
    if (pp) {
        p_bind(mp, pp);
    } else {
        m_wait_for_p(mp);
    }
    return mp->p;
}

/* After its P was taken. */
void m_regain(struct m *mp)
{
    struct p *old = mp->p;
    mp->p = NULL;
    if (!regain(mp, old)) {
        m_leave_for_good(mp);
    }
}

#if PIRN_DEBUG_CHECKS
static bool lock_is_allowed(void)
{
    struct m *mp = getm();
    return !mp || at_load(&mp->where, RELAXED) == M_RUNTIME;
}

__attribute__((constructor(102))) static void entry_init(void)
{
    lock_allowed = lock_is_allowed;
}
#endif

/* --- entering ----------------------------------------------------------------------------------- */

/* True: the P is gone. */
static bool settle_question(struct m *mp)
{
    uint32_t a = at_load(&mp->attention, RELAXED);
    while (a & (M_ASKED | M_LOST)) {
        /* ACQUIRE: with the CAS of the taker. */
        if (at_cas(&mp->attention, &a, a & ~(uint32_t)(M_ASKED | M_LOST), ACQUIRE, RELAXED)) {
            return a & M_LOST;
        }
    }
    return false;
}

/* In a handler, where it can't end: it may go on without a P. */
void m_settle(struct m *mp)
{
    struct p *old = mp->p;
    if (settle_question(mp)) {
        mp->p = NULL;
        regain(mp, old);
    }
}

void enter_slow(struct m *mp)
{
    int saved = errno;
    uint32_t a = at_load(&mp->attention, RELAXED);
    if (a & M_FORKED) {
        forked_call();
    }
    struct p *old = mp->p;
    if (settle_question(mp)) {
        mp->p = NULL;
    }
    if (m_told_to_stop(mp) || (!mp->p && !regain(mp, old))) {
        m_leave_for_good(mp);
    }
    errno = saved;
}

struct m *enter_anyway(void)
{
    struct m *mp = getm();
    if (!mp) {
        return NULL;
    }
    if (at_load(&mp->where, RELAXED) != M_USER) {
        enter_twice(mp);
    }
    at_store(&mp->where, M_RUNTIME, RELAXED);
    at_fence_light(); /* [E1] */
    uint32_t a = at_load(&mp->attention, RELAXED);
    if (!(a & M_STOP) || a & (M_ASKED | M_LOST) || !mp->p) {
        if (a) {
            enter_slow(mp);
        }
    }
    return mp;
}

void enter_twice(struct m *mp)
{
    uint32_t where = at_load(&mp->where, RELAXED);
    at_store(&mp->where, M_RUNTIME, RELAXED);
    if (at_load(&mp->attention, RELAXED) & M_FORKED) {
        forked_call();
    }
    if (where == M_ANNOUNCED || where == M_TAKEN) {
        misuse("a call into pirn between pirn_blocking_begin and pirn_blocking_end");
    }
    if (where == M_GIVEN) {
        misuse("a call into pirn in the function of pirn_blocking");
    }
    throw("entry: a call into pirn from within pirn, or from a signal handler");
}

void handler_may_not_wait(void)
{
    fatal("a call into pirn that waits, from a signal handler");
}

void stop_here(struct m *mp)
{
    if (at_load(&mp->attention, RELAXED) & (M_STOP | M_FORKED)) {
        enter();
        leave();
    }
}

/* --- leaving ------------------------------------------------------------------------------------- */

static void *take_garbage(struct m *mp)
{
    void *first = mp->garbage;
    mp->garbage = NULL;
    at_and(&mp->attention, ~(uint32_t)M_GARBAGE, RELAXED);
    return first;
}

static void free_list(void *p)
{
    for (void *next; p; p = next) {
        next = *(void **)p;
        free(p);
    }
}

/* At the end of its thread. */
void free_garbage(struct m *mp)
{
    free_list(take_garbage(mp));
}

void leave_slow(struct m *mp)
{
    uint32_t a = at_load(&mp->attention, RELAXED);
    if (a & M_FORKED) {
        forked_call();
    }
    void *garbage = a & M_GARBAGE ? take_garbage(mp) : NULL;
    if (a & M_PREEMPT) {
        at_and(&mp->attention, ~(uint32_t)M_PREEMPT, RELAXED);
        if (preempt_due(mp)) {
            int saved = errno;
            preempt_here(mp);
            errno = saved;
        }
    }
    at_store(&mp->where, M_USER, RELEASE); /* [E2] */
    free_list(garbage);
}

/* --- the program's heap -------------------------------------------------------------------------- */

/* The M that has to leave for it, and come back. */
static struct m *in_runtime(void)
{
    struct m *mp = getm();
    return mp && at_load(&mp->where, RELAXED) == M_RUNTIME ? mp : NULL;
}

static void *come_back(struct m *mp, void *p)
{
    if (mp) {
        mp->brings = p;
        enter();
        mp->brings = NULL;
    }
    return p;
}

void *heap_alloc(size_t size)
{
    struct m *mp = in_runtime();
    if (mp) {
        leave();
    }
    return come_back(mp, calloc(1, size));
}

/* At least a pointer in size. */
void heap_free(void *p)
{
    struct m *mp = in_runtime();
    if (!mp) {
        free(p);
        return;
    }
    *(void **)p = mp->garbage;
    mp->garbage = p;
    at_or(&mp->attention, M_GARBAGE, RELAXED);
}
