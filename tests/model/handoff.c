/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that are preempted in the midst of their code, each with a thread that waits for it: whoever
 * comes to one passes his P on, with one note for each P, and the thread goes on with it. No P is lost,
 * and none is in two hands.
 *
 * The signal handler is called by the thread itself, where the signal would come.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"

#define errno (*pirn_errno_location())
#include "../../src/sched/preempt.c"

#define open(path, ...) ((void)(path), 3)
#define read(fd, buf, n) ((void)(fd), *(buf) = '7', (ssize_t)1)
#define close(fd) ((void)(fd))
#include "../../src/sched/retake.c"
#undef open
#undef read
#undef close

size_t fmt(char *buf, size_t size, const char *format, ...)
{
    (void)size, (void)format;
    *buf = 0;
    return 0;
}

void p_give_up_locked(struct m *mp)
{
    model_fail("P %d is given up", mp->p->id);
}

static void use(struct m *mp)
{
    struct p *pp = mp->p;
    CHECK(pp && at_load(&pp->m, RELAXED) == mp);
    CHECK(at_load(&pp->status, RELAXED) == P_RUNNING);
    pp->ngfree++; /* a race, if two have it */
}

/* M i runs G i, in its own code, and has had its slice. */
static void in_the_midst(int i)
{
    struct m *mp = &ms[i];
    mp->curg = new_g(i);
    mp->curg->stack_hi = mp; /* it has begun */
    mp->curg->creator = 1;
    at_store(&mp->curg->status, G_RUNNING, RELAXED);
    at_store(&mp->where, M_USER, RELAXED);
}

/* The clock ticks, for the second time in this slice. */
static void tick(struct m *mp)
{
    siginfo_t info = {.si_code = SI_TIMER, .si_value.sival_ptr = mp};
    struct p *pp = mp->p;
    mp->seen.p = pp;
    mp->seen.tick = at_load(&pp->tick, RELAXED);
    mp->seen.switches = at_load(&pp->counts.switches, RELAXED);
    handler(SIGURG, &info, NULL);
    CHECK(at_load(&mp->where, RELAXED) == M_USER);
}

static void computes(int i)
{
    set_current_m(&ms[i]);
    tick(&ms[i]);
    use(enter()); /* and stays */
}

static void computes0(void)
{
    computes(0);
}

static void computes1(void)
{
    computes(1);
}

/* What m_run does, without stacks. */
static void runs(int i)
{
    struct m *mp = m_begin(i);
    for (struct g *gp; (gp = find_work(mp));) {
        use(mp);
        if (gp->flags & G_BOUND) {
            CHECK(gp->run.m != mp);
            m_hand_off(mp, gp);
        } else {
            run_g(mp, gp);
        }
    }
}

static void runs1(void)
{
    runs(1);
}

static void runs2(void)
{
    runs(2);
}

static void has(int m, int p)
{
    CHECK(ms[m].p == &ps[p] && at_load(&ps[p].m, RELAXED) == &ms[m]);
    CHECK(at_load(&ps[p].status, RELAXED) == P_RUNNING);
}

/* Nothing is left over: neither a goroutine, nor a note. */
static void settled(void)
{
    each_ran_once();
    CHECK(at_load(&sched.globq.size, RELAXED) == 0);
    for (int i = 0; i < PS; i++) {
        CHECK(!ms[i].nextp && !ms[i].nextp_g && !at_load(&ms[i].park.posted, RELAXED));
        CHECK(!ms[i].p || at_load(&ms[i].p->m, RELAXED) == &ms[i]);
    }
}

/* --- one P: the heir runs what waited, then comes to the goroutine ----------------------------------- */

static void setup_one_p(void)
{
    machine_setup_one_p();
    in_the_midst(0);
    runq_put_owner(&ps[0].runq, new_g(1));
}

static void back_with_its_p(void)
{
    settled();
    has(0, 0);
    CHECK(!(gs[0].flags & G_BOUND));
    CHECK(!ms[1].p && ms[1].idle && sched.nmidle == 1);
}

MODEL(heir_sleeps, .setup = setup_one_p, .finish = back_with_its_p, .sleepers = 2,
      .threads = {computes0, runs1}, .preemptions = MODEL_UNBOUNDED)

/* More work comes meanwhile. */
static void foreign(void)
{
    submit_foreign(2);
}

static void back_or_not_asked(void)
{
    CHECK(gs[1].creator == 1 && gs[2].creator <= 1);
    has(0, 0);
}

MODEL(heir_sleeps_more_comes, .setup = setup_one_p, .finish = back_or_not_asked, .sleepers = 2,
      .threads = {computes0, runs1, foreign}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- one P, no thread but those of the goroutines: they take turns ------------------------------------ */

static void setup_turns(void)
{
    machine_setup_one_p();
    midle_get_locked();
    in_the_midst(0);
    in_the_midst(1);
    m_queue_bound_locked(&ms[1]);
}

/* Preempted before, it waits in the handler. */
static void waits_in_handler(struct m *mp)
{
    at_store(&mp->where, M_RUNTIME, RELAXED);
    m_wait_for_p(mp);
    use(mp);
    at_store(&mp->where, M_USER, RELEASE);
}

static void waits_and_computes(void)
{
    set_current_m(&ms[1]);
    waits_in_handler(&ms[1]);
    tick(&ms[1]);
    use(enter());
}

/* M 0 was preempted by the first tick, M 1 by its own; then it has it for good. */
static void in_turns(void)
{
    CHECK(at_load(&sched.globq.size, RELAXED) == 1 && sched.globq.bound.head == &gs[1]);
    has(0, 0);
    CHECK(!ms[1].p && !ms[1].nextp);
}

MODEL(turns, .setup = setup_turns, .finish = in_turns, .sleepers = 2,
      .threads = {computes0, waits_and_computes}, .preemptions = MODEL_UNBOUNDED)

/* --- two Ps: another finds the goroutine before its thread waits --------------------------------------- */

/* Two Ps, and M 2 sleeps. What waits on P 0 is a timer: whoever gets the P has nothing to run. */
static void setup_two_ps(void)
{
    machine_setup(3);
    machine_idle(2);
    sched.pidle = NULL;
    at_store(&ps[2].status, P_RETIRED, RELAXED);
    at_store(&sched.npidle, 0, RELAXED);
    at_store(&sched.nprocs, 2, RELAXED);
    at_store(&sched.nallp, 2, RELAXED);
    in_the_midst(0);
    at_store(&ps[0].timers_due, 1, RELAXED);
}

/* M 2 keeps what it gets; M 1 looks for work. */
static void keeps2(void)
{
    use(m_begin(2));
}

static void one_back(void)
{
    settled();
    CHECK(!ms[1].p);
    if (ms[2].p) {
        has(0, 1);
        has(2, 0);
        CHECK(sched.nmidle == 1);
    } else { /* M 1 slept already, and was the heir */
        has(0, 0);
        CHECK(sched.pidle == &ps[1] && sched.nmidle == 2);
    }
}

MODEL(found_before_it_waits, .setup = setup_two_ps, .finish = one_back, .sleepers = 6,
      .threads = {computes0, runs1, keeps2}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* G 0 waits for its turn, M 2 has P 0 and will come to it, and M 1 is preempted at this moment. */
static void setup_two_compute(void)
{
    setup_two_ps();
    in_the_midst(1);
    CHECK(midle_get_locked() == &ms[2]);
    p_unbind(&ms[0]);
    p_bind(&ms[2], &ps[0]);
    m_queue_bound_locked(&ms[0]);
}

static void waits0(void)
{
    set_current_m(&ms[0]);
    waits_in_handler(&ms[0]);
}

static void both_back(void)
{
    CHECK(at_load(&sched.nspinning, RELAXED) == 0);
    CHECK(gs[0].creator == 1 && gs[1].creator == 1);
    CHECK(ms[0].p && ms[1].p && ms[0].p != ms[1].p && !ms[2].p);
    CHECK(at_load(&sched.globq.size, RELAXED) == 0 && !sched.pidle);
}

MODEL(two_compute, .setup = setup_two_compute, .finish = both_back, .sleepers = 4,
      .threads = {waits0, computes1, runs2}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- its P is taken, since it seems to block, while it is preempted: [E1] in the handler ------------------ */

static void setup_taken(void)
{
    setup_two_ps(); /* but P 1 is not there */
    at_store(&sched.nprocs, 1, RELAXED);
    at_store(&sched.nallp, 1, RELAXED);
    machine_idle(1);
    sched.pidle = NULL;
    at_store(&sched.npidle, 0, RELAXED);
}

static void takes(void)
{
    take(&ps[0], &ms[0], false);
}

static void ticks0(void)
{
    set_current_m(&ms[0]);
    tick(&ms[0]);
}

/* Either way one of the two that sleep was given the P, and only one. */
static void one_heir(void)
{
    CHECK(sched.nmidle == 1 && (ms[1].nextp == &ps[0]) != (ms[2].nextp == &ps[0]));
    CHECK(at_load(&ms[1].park.posted, RELAXED) + at_load(&ms[2].park.posted, RELAXED) == 1);
    CHECK(!ms[0].p || at_load(&ms[0].attention, RELAXED) & M_LOST);
}

MODEL(taken_while_preempted, .setup = setup_taken, .finish = one_heir, .sleepers = 1,
      .threads = {ticks0, takes}, .preemptions = MODEL_UNBOUNDED, .quick = 2)
