/* SPDX-License-Identifier: MIT */
/*
 * A small machine for models of the scheduler: Ms that are model threads, Ps, and Gs. A G is run by
 * calling a function, without a stack of its own; with MACHINE_STACKS it is a goroutine, which can
 * park. find_work() and everything below it is pirn's.
 *
 * A G that must not run alone blocks its M, P and all, until the others have run: so if a wake-up is
 * lost nobody can go on, which the explorer reports.
 */
#ifndef TESTS_MODEL_MACHINE_H
#define TESTS_MODEL_MACHINE_H

#include <stdlib.h>

#include "explorer/model.h"
#include "sched/park.h"

#define MAYBE __attribute__((unused))
#define PS 3
#define GS 6

struct sched sched;
static struct p ps[PS];
static struct m ms[PS];
static struct g gs[GS];
static void (*body[GS])(struct m *mp); /* what a G does; NULL: nothing */
static at_u32 ran[GS];

/* The current M of each model thread. */
#ifndef MACHINE_OWN_MS /* a model that has m.c says so */
static struct m *current_m;
ptrdiff_t m_tls_offset;
#endif

__attribute__((constructor)) static void machine_init(void)
{
#ifndef MACHINE_OWN_MS
    m_tls_offset = (char *)&current_m - arch_thread_pointer();
#endif
    model_thread_local(arch_thread_pointer() + m_tls_offset, sizeof(struct m *));
}

MAYBE static void set_current_m(struct m *mp)
{
    *(struct m **)(void *)(arch_thread_pointer() + m_tls_offset) = mp;
}

/* --- the rest of the runtime: weak, so that a model may bring the real one ------------------------------ */

#define STUB __attribute__((weak))

const struct stack_kind stack_kinds[STACK_CLASSES] STUB = {0};

STUB void stack_refill_g0(struct p *pp, int class)
{
    (void)pp;
    (void)class;
    model_fail("a G of this machine has no stack");
}

STUB void stack_check(struct g *gp)
{
    (void)gp;
}

STUB void dump_locks(const struct g *gp)
{
    (void)gp;
}

STUB void p_retire_g0(struct m *mp)
{
    model_fail("P %d must retire", mp->p->id);
}

#ifndef MACHINE_OWN_MS
void m_leave_for_good(struct m *mp)
{
    model_fail("M %d is told to stop", mp->id);
}
#endif

STUB const char *g_status_name(uint32_t status)
{
    static const char *const names[] = {"idle", "runnable", "running", "waiting"};
    return names[status];
}

#undef errno
STUB int *pirn_errno_location(void)
{
    static int errnos[MODEL_THREADS + 1];
    return &errnos[model_self() + 1];
}

#ifndef MACHINE_SYSMON /* a model that has sysmon.c says so */
void sysmon_kick(void)
{
}

int64_t coarse_now(void)
{
    return 0;
}
#endif

/* Without timers.c: no timers. */
STUB void timers_look(struct p *pp)
{
    (void)pp;
}

STUB bool timers_steal(struct p *victim, int64_t *now)
{
    (void)victim;
    (void)now;
    return false;
}

STUB int64_t timers_next(void)
{
    return PIRN_NEVER;
}

STUB bool timers_unkept(void)
{
    return false;
}

STUB bool timers_unattended(void)
{
    return false;
}

STUB void timers_init(struct timers *h)
{
    memset(h, 0, sizeof *h);
    at_store(&h->next, PIRN_NEVER, RELAXED);
}

STUB void timers_fini(struct timers *h)
{
    (void)h;
}

#ifndef MACHINE_FACTORY
/* As many Ms as Ps, and both lists change together: there is always one asleep for an idle P. */
void factory_want_locked(struct p *pp, struct g *gp, bool spinning)
{
    (void)gp;
    (void)spinning;
    model_fail("P %d finds no M", pp->id);
}
#endif

/* Called when all seem to be asleep: is it true? */
STUB void deadlock_check_locked(uint32_t mine)
{
    (void)mine;
    if (sched.nmidle != sched.nm || sched.globq.list.n) {
        return;
    }
    for (int i = 0; i < PS; i++) {
        CHECK(runq_len(&ps[i].runq) == 0 && !at_load(&ps[i].runq.next, RELAXED));
    }
}

/* --- the machine --------------------------------------------------------------------------------------- */

static void machine_setup(uint32_t n)
{
    memset(&sched, 0, sizeof sched);
    memset(ps, 0, sizeof ps);
    memset(ms, 0, sizeof ms);
    memset(gs, 0, sizeof gs);
    memset(body, 0, sizeof body);
    memset(ran, 0, sizeof ran);
    at_store(&sched.life, LIFE_RUNNING, RELAXED);
    at_store(&sched.nprocs, n, RELAXED);
    at_store(&sched.nallp, n, RELAXED);
    at_store(&sched.keeper_until, PIRN_NEVER, RELAXED);
    sched.nm = n;
    sched.config.time_slice = 10 * PIRN_MS;
    for (uint32_t i = 0; i < n; i++) {
        ps[i].id = (int)i;
        at_store(&ps[i].status, P_RUNNING, RELAXED);
        at_store(&ps[i].tick, 1, RELAXED);
        timers_init(&ps[i].timers);
        at_store(&sched.allp[i], &ps[i], RELAXED);
        ms[i].keeps = PIRN_NEVER;
        ms[i].p = &ps[i];
        at_store(&ps[i].m, &ms[i], RELAXED);
        at_store(&ms[i].where, M_RUNTIME, RELAXED);
        ms[i].id = (int)i;
        rand_seed(&ms[i].rand, i);
    }
    set_current_m(NULL);
}

/* The M sleeps, its P is idle. */
MAYBE static void machine_idle(int i)
{
    struct m *mp = &ms[i];
    pidle_put_locked(mp->p);
    at_store(&mp->p->m, NULL, RELAXED);
    mp->p = NULL;
    mp->idle = true;
    mp->idle_next = sched.midle;
    if (sched.midle) {
        sched.midle->idle_prev = mp;
    }
    sched.midle = mp;
    sched.nmidle++;
}

/* One P, and a second M that sleeps without one. */
MAYBE static void machine_setup_one_p(void)
{
    machine_setup(2);
    machine_idle(1);
    sched.pidle = NULL;
    at_store(&ps[1].status, P_RETIRED, RELAXED);
    at_store(&sched.npidle, 0, RELAXED);
    at_store(&sched.nprocs, 1, RELAXED);
}

MAYBE static struct g *new_g(int i)
{
    gs[i].id = 7;
    at_store(&gs[i].status, G_RUNNABLE, RELAXED);
    return &gs[i];
}

MAYBE static void note_run(int i)
{
    gs[i].creator++; /* a race if two run it */
    at_store(&ran[i], 1, RELEASE);
    futex_wake(&ran[i], GS);
}

MAYBE static void wait_for(int i)
{
    while (!at_load(&ran[i], ACQUIRE)) {
        futex_wait(&ran[i], 0, INT64_MAX);
    }
}

/* What an M does, from the beginning or from its sleep. */
MAYBE static struct m *m_begin(int i)
{
    struct m *mp = &ms[i];
    set_current_m(mp);
    if (!mp->p) {
        note_wait(&mp->park);
        note_clear(&mp->park);
        mp->p = mp->nextp;
        mp->nextg = mp->nextp_g;
        mp->nextp = NULL;
        mp->nextp_g = NULL;
        at_store(&mp->p->m, mp, RELAXED);
    }
    return mp;
}

#ifdef MACHINE_STACKS /* Gs are goroutines */

#define STACK 16384
static _Alignas(64) char stacks[GS][STACK];

static struct g *new_goroutine(int i)
{
    gs[i].stack_hi = stacks[i] + STACK;
    gs[i].sp = NULL;
    return new_g(i);
}

static void commit_end(struct m *mp, struct g *gp)
{
    (void)mp;
    at_store(&gp->status, G_IDLE, RELAXED);
    note_run((int)(gp - gs));
}

/* The first frame of a goroutine. */
void *g_main(void)
{
    struct m *mp = switch_finish();
    leave();
    body[mp->curg - gs](mp);
    mp = enter();
    switch_away(mp, mp->curg, NULL, commit_end);
    model_fail("a goroutine was resumed after its end");
}

MAYBE static void m_loop(int i)
{
    m_run(m_begin(i));
}

static void m_run_one(struct m *mp)
{
    struct g *gp = find_work(mp);
    CHECK(prepare(mp, gp));
    switch_to(mp, &mp->g0, gp);
}

#else

MAYBE static void run_g(struct m *mp, struct g *gp)
{
    int i = (int)(gp - gs);
    CHECK(gp->id == 7);
    at_store(&gp->status, G_RUNNING, RELAXED);
    at_count(&mp->p->counts.switches, 1);
    note_run(i);
    mp->curg = gp;
    at_store(&mp->where, M_USER, RELEASE);
    if (body[i]) {
        body[i](mp);
    }
    at_store(&mp->where, M_RUNTIME, RELAXED);
    mp->curg = NULL;
}

MAYBE static void m_run_one(struct m *mp)
{
    run_g(mp, find_work(mp));
}

MAYBE static void m_loop(int i)
{
    struct m *mp = m_begin(i);
    for (;;) {
        m_run_one(mp);
    }
}

#endif

/* m1: an M. m1_once: one that keeps its P after the first G that it has run, which is enough where
 * the others wait for that G, and leaves out all orders in which they go to sleep afterwards.
 * m1_until: the same, after G 0 has run. m1_sleeps_once: the first time it has looked already. */
#define M_THREADS(i)                                                                               \
    MAYBE static void m##i(void)                                                                   \
    {                                                                                              \
        m_loop(i);                                                                                 \
    }                                                                                              \
    MAYBE static void m##i##_once(void)                                                            \
    {                                                                                              \
        m_run_one(m_begin(i));                                                                     \
    }                                                                                              \
    MAYBE static void m##i##_until(void)                                                           \
    {                                                                                              \
        struct m *mp = m_begin(i);                                                                 \
        do {                                                                                       \
            m_run_one(mp);                                                                         \
        } while (!at_load(&ran[0], RELAXED));                                                      \
    }                                                                                              \
    MAYBE static void m##i##_sleeps_once(void)                                                     \
    {                                                                                              \
        struct m *mp = m_begin(i);                                                                 \
        m_idle(mp);                                                                                \
        m_run_one(mp);                                                                             \
    }
M_THREADS(0)
M_THREADS(1)
M_THREADS(2)

/* A thread that pirn did not make submits G i. */
MAYBE static void submit_foreign(int i)
{
    struct g *gp = new_g(i);
    lock(&sched.lock);
    globq_put_locked(&sched.globq, gp);
    unlock(&sched.lock);
    wake_for(NULL);
}

/* All that was submitted has run once, nobody spins, and the idle lists are whole. */
static void each_ran_once(void)
{
    for (int i = 0; i < GS; i++) {
        CHECK(gs[i].creator == (gs[i].id == 7));
    }
    CHECK(at_load(&sched.nspinning, RELAXED) == 0);
    uint32_t n = 0, k = 0;
    for (struct m *mp = sched.midle; mp; mp = mp->idle_next) {
        CHECK(mp->idle && !mp->p);
        n++;
    }
    for (struct p *pp = sched.pidle; pp; pp = pp->link) {
        CHECK(at_load(&pp->status, RELAXED) == P_IDLE);
        k++;
    }
    CHECK(n == sched.nmidle && k == at_load(&sched.npidle, RELAXED));
}

/* ... and who has no work sleeps. */
MAYBE static void all_ran(void)
{
    each_ran_once();
    CHECK(at_load(&sched.npidle, RELAXED) == sched.nmidle);
}

/* ... and that is everybody. */
MAYBE static void all_at_rest(void)
{
    each_ran_once();
    CHECK(at_load(&sched.npidle, RELAXED) == at_load(&sched.nprocs, RELAXED));
    CHECK(sched.nmidle == sched.nm);
}

#endif
