/* SPDX-License-Identifier: MIT */
/*
 * The world is stopped while a thread goes in and out of the runtime, blocks, computes or sleeps: when
 * world_stop is back nobody uses a P, also none that had lost it; when the world starts again every
 * goroutine goes on, and no P is lost.
 *
 * M 0, the only one, has a goroutine in its own code. Who stops the world is a foreign thread. Whoever uses a
 * P writes to what the stopper writes to while the world stands still.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MACHINE_FACTORY
#include "machine.h"

#define errno (*pirn_errno_location())

/* What the kernel says about M 0. */
static char asleep;
#define open(path, ...) ((void)(path), 3)
#define read(fd, buf, n) ((void)(fd), *(buf) = asleep, (ssize_t)1)
#define close(fd) ((void)(fd))
#include "../../src/sched/retake.c"
#undef open
#undef read
#undef close

/* A signal comes where its thread looks for it. */
static at_u32 signalled;
void real_preempt_send(struct m *mp);
#define preempt_send real_preempt_send
#include "../../src/sched/preempt.c"
#undef preempt_send

void preempt_send(struct m *mp)
{
    CHECK(mp == &ms[0]);
    at_store(&signalled, 1, RELEASE);
    futex_wake(&signalled, 1);
}

#include "../../src/sched/world.c"

size_t fmt(char *buf, size_t size, const char *format, ...)
{
    (void)size, (void)format;
    *buf = 0;
    return 0;
}

void sysmon_may_block(void)
{
}

bool foreign_enter(void)
{
    model_fail("pirn_procs");
}

void foreign_leave(void)
{
}

int stack_room_for_procs(uint32_t n)
{
    (void)n;
    return 0;
}

void stack_flush(struct p *pp)
{
    (void)pp;
}

void g_flush(struct p *pp)
{
    (void)pp;
}

/* --- the factory, which can make no threads: give_up in factory.c ------------------------------------ */

void factory_want_locked(struct p *pp, struct g *gp, bool spinning)
{
    struct m *mp = p_heir_locked(pp, gp);
    if (mp) {
        note_post(&mp->park);
    } else {
        p_put_back_locked(pp);
    }
    if (spinning) {
        at_store(&sched.nspinning, 0, RELAXED);
    }
}

/* --- who runs ----------------------------------------------------------------------------------------- */

static int world; /* written by all that use a P; a race, if the world does not stand still */
static int stops;

static void use(struct m *mp)
{
    struct p *pp = mp->p;
    CHECK(pp && at_load(&pp->m, RELAXED) == mp);
    CHECK(at_load(&pp->status, RELAXED) == P_RUNNING);
    world++;
}

static struct gextra extra;

static void setup(void)
{
    machine_setup(1);
    memset(&retake, 0, sizeof retake);
    asleep = 'r';
    sched.preempt = true;
    at_store(&signalled, 0, RELAXED);
    at_store(&busy, 0, RELAXED);
    at_store(&nrunning, 0, RELAXED);
    world = stops = 0;
    struct g *gp = ms[0].curg = new_g(0);
    gp->stack_hi = &gs[0];
    gp->creator = 1;
    at_store(&gp->status, G_RUNNING, RELAXED);
    at_store(&ms[0].where, M_USER, RELAXED);
    /* Stays on its thread, as it has no stack here. */
    extra = (struct gextra){.locked = 1};
    gp->extra = &extra;
    gp->flags |= G_BOUND;
    gp->run.m = &ms[0];
    ms[0].lockedg = gp;
}

static void setup_asleep(void)
{
    setup();
    asleep = '7';
}

static void stopper(void)
{
    if (world_stop(INT64_MAX)) {
        world++;
        stops++;
    }
    world_start();
}

static void stopper_in_a_hurry(void)
{
    if (world_stop(PIRN_MS)) {
        world++;
        stops++;
        world_start();
    }
}

static void in_and_out(void)
{
    set_current_m(&ms[0]);
    use(enter());
    leave();
    use(enter());
    leave();
}

static void in_and_out_once(void)
{
    set_current_m(&ms[0]);
    use(enter());
    leave();
}

/* Computes until the signal comes. */
static void computes(void)
{
    struct m *mp = &ms[0];
    siginfo_t info = {.si_code = SI_TIMER, .si_value.sival_ptr = mp};
    set_current_m(mp);
    while (!at_load(&signalled, ACQUIRE)) {
        futex_wait(&signalled, 0, INT64_MAX);
    }
    handler(SIGURG, &info, NULL);
    use(enter());
    leave();
}

/* Its CPU clock ticks while it seems to block. */
static void ticks(void)
{
    struct m *mp = &ms[0];
    siginfo_t info = {.si_code = SI_TIMER, .si_value.sival_ptr = mp};
    set_current_m(mp);
    handler(SIGURG, &info, NULL);
    use(enter());
    leave();
}

static void blocks(void)
{
    set_current_m(&ms[0]);
    pirn_blocking_begin();
    pirn_blocking_end();
    use(enter());
    leave();
}

/* The P is where it belongs: with M 0, or taken from it while it was out. */
static void goes_on(void)
{
    CHECK(!sched.stopped && at_load(&nrunning, RELAXED) == 0 && at_load(&busy, RELAXED) == 0);
    CHECK(!at_load(&ps[0].retire, RELAXED));
    CHECK(at_load(&sched.globq.size, RELAXED) == 0);
    CHECK(!ms[0].nextp && !at_load(&ms[0].park.posted, RELAXED));
    if (at_load(&ms[0].attention, RELAXED) & M_LOST) {
        CHECK(sched.pidle == &ps[0] && !at_load(&ps[0].m, RELAXED));
    } else {
        CHECK(ms[0].p == &ps[0] && at_load(&ps[0].m, RELAXED) == &ms[0]);
        CHECK(at_load(&ps[0].status, RELAXED) == P_RUNNING && !sched.pidle);
    }
    CHECK(at_load(&sched.nspinning, RELAXED) == 0);
}

static void stopped_once(void)
{
    CHECK(stops == 1);
    goes_on();
}

#define WORLD(mname, setup_, finish_, ...)                                                         \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

WORLD(stop_while_it_blocks, setup_asleep, stopped_once, in_and_out, stopper)
WORLD(stop_in_a_hurry, setup, goes_on, in_and_out_once, stopper_in_a_hurry)
WORLD(stop_while_it_computes, setup, stopped_once, computes, stopper)
WORLD(stop_while_it_ticks, setup_asleep, stopped_once, ticks, stopper)
WORLD(stop_while_it_announces, setup_asleep, stopped_once, blocks, stopper)

/* --- an M that runs, looks for work and sleeps --------------------------------------------------------- */

static void uses(struct m *mp)
{
    use(mp);
}

static void setup_m(void)
{
    setup();
    ms[0].curg = ms[0].lockedg = NULL;
    memset(gs, 0, sizeof gs);
    at_store(&ms[0].where, M_RUNTIME, RELAXED);
    body[1] = uses;
}

static void setup_runs(void)
{
    setup_m();
    runq_put_owner(&ps[0].runq, new_g(1));
}

/* The world stands still, and is about to start. */
static void setup_sleeps(void)
{
    setup_m();
    machine_idle(0);
    sched.stopped = true;
    at_store(&busy, 1, RELAXED);
}

static void setup_goes_to_sleep(void)
{
    setup_m();
    p_unbind(&ms[0]);
    at_store(&ps[0].status, P_STOPPED, RELAXED);
    sched.stopped = true;
    at_store(&busy, 1, RELAXED);
}

/* Submitted whenever: it runs, but not while the world stands still. */
static void foreign(void)
{
    submit_foreign(1);
}

static void starter(void)
{
    world++;
    world_start();
}

static void goes_to_sleep(void)
{
    set_current_m(&ms[0]);
    m_idle(&ms[0]);
    m_run_one(&ms[0]);
}

static void ran_after(void)
{
    each_ran_once();
    CHECK(!sched.stopped && ms[0].p == &ps[0]);
}

static void stopped_and_at_rest(void)
{
    CHECK(stops == 1 && !sched.stopped);
    all_at_rest();
}

MODEL(stop_while_it_runs, .setup = setup_runs, .finish = stopped_and_at_rest, .sleepers = 1,
      .threads = {m0, stopper}, .preemptions = MODEL_UNBOUNDED, .quick = 2)
MODEL(submit_while_it_starts, .setup = setup_sleeps, .finish = ran_after,
      .threads = {m0_once, foreign, starter}, .preemptions = MODEL_UNBOUNDED, .quick = 2)
MODEL(submit_while_it_starts_and_one_goes_to_sleep, .setup = setup_goes_to_sleep,
      .finish = ran_after, .threads = {goes_to_sleep, foreign, starter},
      .preemptions = MODEL_UNBOUNDED, .quick = 2)
