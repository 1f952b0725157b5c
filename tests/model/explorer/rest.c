/* SPDX-License-Identifier: MIT */
/*
 * What nearly every file of the scheduler calls now and then, for models that don't look at it: entry.c
 * without questions, no preemption, no locked threads, no factory. All weak, so that a model may bring
 * the real one.
 */
#include <stdlib.h>

#include "explorer/model.h"
#include "panic/panic.h"
#include "sched/switch.h"

#define STUB __attribute__((weak))

/* 0: no thread is an M. Weak too, for models without Ms. */
ptrdiff_t m_tls_offset STUB;
bool forked STUB;

/* --- entry.c ------------------------------------------------------------------------------------- */

STUB void enter_slow(struct m *mp)
{
    model_fail("M %d has attention %u", mp->id, at_load(&mp->attention, RELAXED));
}

STUB void enter_twice(struct m *mp)
{
    model_fail("M %d enters twice", mp->id);
}

STUB void handler_may_not_wait(void)
{
    model_fail("waits in a signal handler");
}

STUB struct m *enter_anyway(void)
{
    return enter();
}

/* Somebody may be told to stop meanwhile. */
STUB void leave_slow(struct m *mp)
{
    at_store(&mp->where, M_USER, RELEASE);
}

STUB void stop_here(struct m *mp)
{
    model_fail("M %d ends", mp->id);
}

STUB void *heap_alloc(size_t size)
{
    return model_calloc(1, size);
}

STUB void heap_free(void *p)
{
    model_free(p);
}

/* --- retake.c, preempt.c ------------------------------------------------------------------------- */

STUB bool retake_look(struct p *pp, int64_t now)
{
    (void)pp, (void)now;
    return false;
}

STUB bool retake_is_keen(int64_t now)
{
    return (void)now, false;
}

STUB bool retake_for_world(struct p *pp)
{
    (void)pp;
    return true;
}

STUB bool preempt_due(struct m *mp)
{
    (void)mp;
    return false;
}

STUB void preempt_here(struct m *mp)
{
    model_fail("M %d is preempted", mp->id);
}

STUB void preempt_send(struct m *mp)
{
    (void)mp;
}

/* --- lockthread.c, factory.c, world.c, init.c ------------------------------------------------------ */

STUB void bound_leaves(struct m *mp, struct g *gp)
{
    (void)mp, (void)gp;
}

STUB void visit_wait(struct note *n)
{
    (void)n;
}

STUB struct p *factory_take_back_locked(void)
{
    return NULL;
}

STUB void factory_born(struct m *mp)
{
    model_fail("M %d is born", mp->id);
}

STUB void factory_join_locked(struct m *mp)
{
    model_fail("M %d ends before the runtime", mp->id);
}

STUB void factory_want_spare_locked(void)
{
}

STUB void p_stopped_locked(struct p *pp)
{
    model_fail("P %d is stopped", pp->id);
}

STUB void forked_call(void)
{
    model_fail("nobody has forked");
}

#define NOTHING(name, ...)                                                                         \
    STUB void name(__VA_ARGS__)                                                                    \
    {                                                                                              \
    }
#define UNUSED __attribute__((unused))
NOTHING(retake_start, void)
NOTHING(retake_stop, void)
NOTHING(preempt_thread_begin, struct m *mp UNUSED)
NOTHING(preempt_thread_end, struct m *mp UNUSED)
NOTHING(preempt_check_handler, void)
NOTHING(preempt_stop, void)
NOTHING(sigstack_start, void)
NOTHING(sigstack_look, void)
NOTHING(quit_start, void)
NOTHING(quit_stop, void)
NOTHING(quit_if_asked, void)
NOTHING(say_rest, void)

__attribute__((weak)) int64_t cycles_look(int64_t now UNUSED)
{
    return INT64_MAX;
}
NOTHING(visits_allow, void)
NOTHING(visits_end, void)
NOTHING(visits_bounds, void **lo UNUSED, size_t *size UNUSED)
NOTHING(preempt_timer_end_locked, struct m *mp UNUSED)

/* idle.c */
STUB void m_post(struct m *mp)
{
    at_store(&mp->park.posted, 1, RELEASE);
    futex_wake(&mp->park.posted, 1);
}

STUB int preempt_start(void)
{
    return 0;
}

/* --- panic/: what is deferred is called in the end; there are no panics ----------------------------- */

STUB void defer_begin(struct pirn_defer_ *d, void (*fn)(void *), void *arg, void *frame)
{
    (void)frame;
    d->fn_ = (void (*)(void))fn;
    d->slot_[0] = (uintptr_t)arg;
}

STUB void defer_end(struct pirn_defer_ *d)
{
    ((void (*)(void *))d->fn_)((void *)(uintptr_t)d->slot_[0]);
}

STUB void group_none(struct pirn_group *g)
{
    (void)g;
}

STUB void switch_cxx(struct m *mp, struct g *from, struct g *to, bool gone)
{
    (void)from, (void)to, (void)gone;
    model_fail("M %d has exceptions", mp->id);
}

STUB void panic_start(void)
{
}

STUB void panic_forget(struct g *gp)
{
    (void)gp;
}

STUB void fault_start(void)
{
}

STUB void fault_stop(void)
{
}

STUB void report_wait(void)
{
}

STUB struct cxx_globals *cxx_globals(void)
{
    return NULL;
}

void (*fatal_dump)(int fd) STUB;

STUB void dump_all(int fd)
{
    (void)fd;
}
