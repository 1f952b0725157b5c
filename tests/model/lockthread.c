/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that are locked to a thread: whoever comes to one passes his P on, also before that thread
 * has come to wait; the thread of pirn_run is visited by goroutine 1, and wakes for its end once.
 */
#include <pthread.h>
#include <signal.h>

#define MACHINE_FACTORY
#define MACHINE_STACKS
#include "machine.h"

#define errno (*pirn_errno_location())
#define pthread_sigmask(how, set, old) ((void)(set), (void)(old))
#include "../../src/sched/lockthread.c"

/* No thread can be made: as in factory.c, the P becomes idle again, and sysmon sees to the rest. */
static bool refused;
void factory_want_locked(struct p *pp, struct g *gp, bool spinning)
{
    refused = true;
    if (gp) {
        globq_put_locked(&sched.globq, gp);
    }
    while ((gp = runq_take_next_owner(&pp->runq)) || (gp = runq_get_owner(&pp->runq))) {
        globq_put_locked(&sched.globq, gp); /* as drain_locked in p.c */
    }
    pidle_put_locked(pp);
    if (spinning) {
        at_store(&sched.nspinning, 0, RELAXED);
    }
}

static struct gextra extra;

struct gextra *g_extra(struct g *gp)
{
    gp->extra = &extra;
    return &extra;
}

void thread_stack_bounds(void **lo, size_t *size)
{
    *lo = NULL;
    *size = 0;
}

void m_init(struct m *mp)
{
    *mp = (struct m){0};
    at_store(&mp->g0.status, G_RUNNING, RELAXED);
    at_store(&mp->where, M_RUNTIME, RELAXED);
}

void m_be(struct m *mp)
{
    set_current_m(mp);
    m_run(mp);
    set_current_m(NULL);
}

static void use(struct m *mp)
{
    struct p *pp = mp->p;
    CHECK(pp && at_load(&pp->m, RELAXED) == mp);
    pp->ngfree++; /* a race, if two have it */
}

static AT(struct g *) parked;

static void setup(uint32_t n)
{
    machine_setup(n);
    memset(&host, 0, sizeof host);
    extra = (struct gextra){0};
    refused = false;
    at_store(&parked, NULL, RELAXED);
}

/* --- it parks, and is made ready at once ------------------------------------------------------------ */

static bool commit_tell(struct g *gp, void *arg)
{
    (void)arg;
    at_store(&parked, gp, RELEASE);
    return true;
}

static void parks_locked(struct m *mp)
{
    volatile int on_stack = 41;
    on_stack++;
    pirn_lock_thread();
    CHECK(getm() == mp);
    enter();
    park(commit_tell, NULL, WAIT_PARK);
    CHECK(getm() == mp && on_stack == 42);
    use(mp);
    leave();
    pirn_unlock_thread();
}

static void foreign_readies(void)
{
    struct g *gp;
    while (!(gp = at_load(&parked, ACQUIRE))) {
        at_pause();
    }
    CHECK(foreign_enter());
    ready(gp);
    foreign_leave();
}

static void nobody_bound(void)
{
    each_ran_once();
    CHECK(sched.nmlocked == 0 && at_load(&sched.globq.size, RELAXED) == 0);
    for (int i = 0; i < PS; i++) {
        CHECK(!ms[i].nextp && !ms[i].nextp_g && !ms[i].lockedg && !ms[i].locked_waits);
        CHECK(!at_load(&ms[i].park.posted, RELAXED));
    }
}

static void locked_ran(void)
{
    nobody_bound();
    CHECK(gs[0].creator == 1 && !(gs[0].flags & G_BOUND));
}

/* One P: M 0 gives it up, M 1 sleeps without. Or the goroutine is found by M 1, which has a P. */
static void setup_one_p(void)
{
    setup(2);
    machine_idle(1);
    sched.pidle = NULL;
    at_store(&ps[1].status, P_RETIRED, RELAXED);
    at_store(&sched.npidle, 0, RELAXED);
    at_store(&sched.nprocs, 1, RELAXED);
    at_store(&sched.nallp, 1, RELAXED);
    body[0] = parks_locked;
    runq_put_owner(&ps[0].runq, new_goroutine(0));
}

/* What m_run does, for as long as the locked goroutine has not ended. */
static void runs_locked(void)
{
    struct m *mp = m_begin(0);
    m_run_one(mp);
    while (mp->lockedg) {
        m_wait_locked(mp);
        m_run_one(mp);
    }
}

/* A picker: passes on what is bound. */
static void picks(void)
{
    struct m *mp = m_begin(1);
    for (struct g *gp; (gp = find_work(mp));) {
        CHECK(gp == &gs[0] && gp->flags & G_BOUND && gp->run.m == &ms[0]);
        use(mp);
        m_hand_off(mp, gp);
    }
}

MODEL(parks_on_one_p, .setup = setup_one_p, .finish = locked_ran, .sleepers = 2,
      .threads = {runs_locked, picks, foreign_readies}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* Two Ps: it has parked and is ready again, but its thread has not come to wait yet. */
static void setup_two_ps(void)
{
    setup(2);
    extra.locked = 1;
    new_goroutine(0);
    gs[0].extra = &extra;
    gs[0].flags |= G_BOUND;
    gs[0].run.m = &ms[0];
    ms[0].lockedg = &gs[0];
    globq_put_locked(&sched.globq, &gs[0]);
}

static void waits_locked(void)
{
    struct m *mp = m_begin(0);
    m_wait_locked(mp);
    CHECK(mp->nextg == &gs[0]);
    use(mp);
    gs[0].creator++;
}

static void taken_by_its_thread(void)
{
    each_ran_once();
    CHECK(sched.nmlocked == 0 && (refused || at_load(&sched.globq.size, RELAXED) == 0));
    CHECK(ms[0].p && at_load(&ms[0].p->m, RELAXED) == &ms[0]);
    CHECK(!ms[1].p && ms[1].idle && at_load(&sched.npidle, RELAXED) == 1);
    CHECK(!ms[0].nextp && !ms[1].nextp && !at_load(&ms[0].park.posted, RELAXED));
}

MODEL(picked_before_it_waits, .setup = setup_two_ps, .finish = taken_by_its_thread, .sleepers = 2,
      .threads = {waits_locked, picks}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* The goroutine becomes ready while its thread goes to wait. */
static void setup_waits(void)
{
    setup_two_ps();
    glist_get(&sched.globq.bound);
    at_store(&sched.globq.size, 0, RELAXED);
    at_store(&gs[0].status, G_WAITING, RELAXED);
    machine_idle(1);
}

static void foreign_readies_it(void)
{
    ready(&gs[0]);
}

MODEL(ready_while_it_goes_to_wait, .setup = setup_waits, .finish = taken_by_its_thread,
      .sleepers = 2, .threads = {waits_locked, picks, foreign_readies_it},
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- the thread of pirn_run ---------------------------------------------------------------------------- */

static struct waiter waiter;
static int said;

/* Goroutine 1: on its way to the host, back, and its end is told. */
static void visits(struct m *mp)
{
    (void)mp;
    volatile int on_stack = 41;
    on_stack++;
    pirn_lock_thread();
    CHECK(getm() == &host.m && on_stack == 42);
    use(enter());
    leave();
    pirn_unlock_thread();
    pirn_yield(); /* leaves it */
    CHECK(getm() != &host.m && on_stack == 42);
    enter();
    said = 1;
    foreign_ready(&waiter);
    leave();
}

static bool commit_nothing(struct g *gp, void *arg)
{
    (void)gp, (void)arg;
    return true;
}

static void host_waits(void)
{
    visits_allow();
    CHECK(foreign_enter());
    foreign_park(&waiter, true, commit_nothing, NULL, PIRN_NEVER);
    CHECK(said == 1 && !getm());
    visits_end();
}

static void setup_host(void)
{
    setup(1);
    memset(&waiter, 0, sizeof waiter);
    said = 0;
    is_host = false;
    body[0] = visits;
    ms[0].nextg = new_goroutine(0);
    gs[0].flags |= G_MAIN;
}

static void visited(void)
{
    nobody_bound();
    CHECK(said == 1 && gs[0].creator == 1);
    CHECK(sched.nm == 1 && !host.visitor && !host.asleep_on);
    CHECK(sched.nmidle == 1 && sched.pidle == &ps[0]);
    CHECK(at_load(&sched.nforeign, RELAXED) == 0 && at_load(&sched.nforeign_parked, RELAXED) == 0);
}

__attribute__((constructor)) static void host_init(void)
{
    model_thread_local(&is_host, sizeof is_host);
}

MODEL(visit, .setup = setup_host, .finish = visited, .sleepers = 1, .threads = {m0, host_waits},
      .preemptions = MODEL_UNBOUNDED, .quick = 2)
