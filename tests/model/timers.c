/* SPDX-License-Identifier: MIT */
/*
 * Timers and who keeps the time: [T1], [T2] and [T3] of timers.c. A timer that was set makes its G
 * runnable, though all who could look at it sleep or compute: time passes here when nobody can go on,
 * and if nobody keeps it then, it never does, which the explorer reports. And timers that are stopped
 * or set anew while they fire: each firing happens once or not at all, as stop and set say, and after
 * stop has returned the timer may be freed.
 */
#include "foreign_lean.h"
#include "machine.h"

#include "../../src/sched/idle.c"

#define SOON_ENOUGH (1 * PIRN_MS)
#define LATER (2 * PIRN_MS)

static struct timed {
    struct timer timer; /* first */
    struct waiter waiter;
    int fired; /* under the lock of the heap */
} * timed;

static struct waiter *fire(struct timer *t)
{
    struct timed *s = (struct timed *)(void *)t;
    s->fired++;
    return s->waiter.g ? &s->waiter : NULL;
}

static const struct timer_kind kind = {.fire = fire};

/* A timer; G i waits for it, if that is not negative. */
static void new_timer(int i)
{
    timed = calloc(1, sizeof *timed);
    timed->timer.kind = &kind;
    if (i >= 0) {
        timed->waiter.g = new_g(i);
        at_store(&gs[i].status, G_WAITING, RELAXED);
    }
}

static void set_in_setup(int m, int64_t when, int64_t period)
{
    ms[m].curg = NULL; /* as if on g0: needs no keeper */
    set_current_m(&ms[m]);
    timer_set(&timed->timer, when, period);
    set_current_m(NULL);
}

static void free_heaps(void)
{
    for (int i = 0; i < PS; i++) {
        timers_fini(&ps[i].timers);
    }
}

static void fired(void)
{
    CHECK(timed->fired == 1);
    CHECK(timers_next() == PIRN_NEVER && !at_load(&timed->timer.heap, RELAXED));
    each_ran_once();
    CHECK((int64_t)at_load(&sched.keeper_until, RELAXED) == PIRN_NEVER);
    free(timed);
    free_heaps();
}

static void fired_and_ran(void)
{
    fired();
    all_ran();
}

/* An M whose goroutine sets the timer and computes until it has come. */
static void busy_sets(void)
{
    set_current_m(&ms[0]);
    ms[0].curg = &gs[GS - 1];
    timer_set(&timed->timer, SOON_ENOUGH, 0);
    wait_for(1);
}

/* The commit action of a sleep, on an M that has switched to another goroutine, which computes. */
static void busy_sleeps(void)
{
    set_current_m(&ms[0]);
    ms[0].curg = &gs[GS - 1];
    timers_sleep(&timed->waiter, SOON_ENOUGH);
    timed->fired = 1; /* there is no timer that would count */
    wait_for(1);
}

static void foreign_sets(void)
{
    timer_set(&timed->timer, SOON_ENOUGH, 0);
    wait_for(1);
}

/* Ms that are on the list, and about to sleep. */
static void m_sleeping(int i)
{
    struct m *mp = &ms[i];
    set_current_m(mp);
    sleep_until_given(mp);
    m_run_one(mp);
}

static void m0_asleep(void)
{
    m_sleeping(0);
}
static void m1_asleep(void)
{
    m_sleeping(1);
}
static void m2_asleep(void)
{
    m_sleeping(2);
}

static void setup_one(void)
{
    machine_setup(1);
    new_timer(1);
}

static void setup_one_asleep(void)
{
    setup_one();
    machine_idle(0);
}

static void setup_two(void)
{
    machine_setup(2);
    new_timer(1);
}

static void setup_second_asleep(void)
{
    setup_two();
    machine_idle(1);
}

#define TIMERS(mname, setup_, ...)                                                                 \
    MODEL(mname, .setup = setup_, .finish = fired_and_ran, .sleepers = 7,                          \
          .threads = {__VA_ARGS__}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- who keeps the time? ------------------------------------------------------------------------------- */

TIMERS(set_while_other_goes_to_sleep, setup_two, busy_sets, m1_once)
TIMERS(set_while_other_sleeps, setup_second_asleep, busy_sets, m1_asleep)
TIMERS(sleep_while_other_goes_to_sleep, setup_two, busy_sleeps, m1_once)
TIMERS(sleep_while_other_sleeps, setup_second_asleep, busy_sleeps, m1_asleep)
TIMERS(foreign_sets_while_last_goes_to_sleep, setup_one, foreign_sets, m0_once)
TIMERS(foreign_sets_while_last_sleeps, setup_one_asleep, foreign_sets, m0_asleep)

/* An earlier timer than the one that is kept: its keeper won't wake in time. */
static struct timed *other;

static void setup_later_kept(void)
{
    setup_second_asleep();
    other = timed;
    new_timer(2);
    set_in_setup(0, LATER, 0);
}

static void busy_sets_earlier(void)
{
    set_current_m(&ms[0]);
    ms[0].curg = &gs[GS - 1];
    timer_set(&other->timer, SOON_ENOUGH, 0);
    wait_for(1);
    CHECK(!at_load(&ran[2], RELAXED));
    wait_for(2);
}

static void both_fired_one_p(void)
{
    CHECK(other->fired == 1);
    free(other);
    fired();
}

static void both_fired(void)
{
    both_fired_one_p();
    all_ran();
}

static void m1_asleep_twice(void)
{
    m_sleeping(1);
    m_run_one(&ms[1]);
}

MODEL(set_earlier_than_kept, .setup = setup_later_kept, .finish = both_fired, .sleepers = 2,
      .threads = {busy_sets_earlier, m1_asleep_twice}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- the keeper is taken by a waker, and its goroutine waits for the timer: another must keep the time - */

static void waits_for_the_timer(struct m *mp)
{
    (void)mp;
    wait_for(1);
}

static void setup_keeper_is_taken(void)
{
    machine_setup(3);
    new_timer(1);
    set_in_setup(0, SOON_ENOUGH, 0);
    machine_idle(2);
    machine_idle(1); /* the first to be taken */
    body[2] = waits_for_the_timer;
}

static void busy_submits(void)
{
    set_current_m(&ms[0]);
    ms[0].curg = &gs[GS - 1];
    runq_submit(&ps[0], new_g(2), false);
    wait_for(1);
}

TIMERS(keeper_is_taken, setup_keeper_is_taken, busy_submits, m1_asleep, m2_asleep)

/* The same by a foreign thread, and with no other M: who has taken the P keeps the time again. */
static void setup_only_keeper_is_taken(void)
{
    machine_setup(1);
    new_timer(1);
    set_in_setup(0, SOON_ENOUGH, 0);
    machine_idle(0);
}

static void foreign_submits(void)
{
    submit_foreign(0);
}

static void m0_asleep_twice(void)
{
    m_sleeping(0);
    m_run_one(&ms[0]);
}

TIMERS(only_keeper_is_taken, setup_only_keeper_is_taken, foreign_submits, m0_asleep_twice)

/* --- the keeper's time comes while the only P runs ------------------------------------------------------------- */

/* M 1 is about to sleep, and finds the P idle or not; M 0 has been woken, and has not got the P yet. */
static void setup_all_run(void)
{
    machine_setup_one_p();
    new_timer(1);
    set_in_setup(0, SOON_ENOUGH, 0);
    ms[0].p = NULL;
    pidle_put_locked(&ps[0]);
}

static void m0_takes_p(void)
{
    struct m *mp = &ms[0];
    set_current_m(mp);
    lock(&sched.lock);
    mp->p = pidle_get_locked();
    unlock(&sched.lock);
    if (!mp->p) { /* the keeper was earlier */
        wait_for(1);
        return;
    }
    m_idle(mp);
    m_run_one(mp);
}

MODEL(time_comes_while_all_run, .setup = setup_all_run, .finish = fired, .sleepers = 3,
      .threads = {m0_takes_p, m1_asleep}, .timeouts = 1, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- a thread ends that is about to keep the time: another does ------------------------------------------- */

static void m0_runs_one_or_ends(void)
{
    struct m *mp = &ms[0];
    set_current_m(mp);
    struct g *gp = find_work(mp);
    if (gp) {
        run_g(mp, gp);
    }
}

/* As sysmon does. */
static void m0_is_ended(void)
{
    lock(&sched.lock);
    bool can = ms[0].idle && ms[0].keeps == PIRN_NEVER;
    if (can) {
        midle_take_locked(&ms[0]);
        ms[0].retires = true;
    }
    unlock(&sched.lock);
    if (can) {
        m_post(&ms[0]);
    }
}

static void setup_one_ends(void)
{
    machine_setup_one_p();
    new_timer(1);
    set_in_setup(0, SOON_ENOUGH, 0);
}

MODEL(one_ends_that_would_keep, .setup = setup_one_ends, .finish = fired, .sleepers = 7,
      .threads = {m0_runs_one_or_ends, m1_asleep, m0_is_ended}, .preemptions = MODEL_UNBOUNDED,
      .quick = 2)

/* --- whoever must wake wakes: these end there, and nothing fires ------------------------------------------- */

static void m_wakes(int i)
{
    set_current_m(&ms[i]);
    sleep_until_given(&ms[i]);
}

static void m1_wakes(void)
{
    m_wakes(1);
}
static void m2_wakes(void)
{
    m_wakes(2);
}

static void forget_all(void)
{
    CHECK(timed->fired == 0 && timers_next() != PIRN_NEVER);
    free(timed);
    free_heaps();
}

/* The keeper's time comes while all run, and a foreign thread sets another timer: it must not count on
 * the keeper, if the P becomes idle. */
static void setup_all_run_two(void)
{
    setup_all_run();
    other = timed;
    new_timer(2);
}

static void m0_takes_p_and_sleeps(void)
{
    struct m *mp = &ms[0];
    set_current_m(mp);
    lock(&sched.lock);
    mp->p = pidle_get_locked();
    unlock(&sched.lock);
    if (mp->p) {
        timer_stop(&other->timer); /* as if it had fired */
        m_idle(mp);
    }
}

static void foreign_sets_later(void)
{
    timer_set(&timed->timer, LATER, 0);
}

/* Somebody has the P, and will look at its timers. */
static void p_runs(void)
{
    CHECK(at_load(&ps[0].status, RELAXED) == P_RUNNING);
    free(other);
    forget_all();
}

MODEL(time_comes_and_another_is_set, .setup = setup_all_run_two, .finish = p_runs, .sleepers = 3,
      .threads = {m0_takes_p_and_sleeps, m1_wakes, foreign_sets_later}, .timeouts = 1,
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* Who spins has found work, and the timer was left to it: [T3]. */
static void setup_spinner(void)
{
    machine_setup(3);
    machine_idle(2);
    new_timer(1);
    at_store(&sched.nspinning, 1, RELAXED);
    ms[1].spinning = true;
}

static void sets(void)
{
    set_current_m(&ms[0]);
    ms[0].curg = &gs[GS - 1];
    timer_set(&timed->timer, SOON_ENOUGH, 0);
}

static void stops_spinning(void)
{
    set_current_m(&ms[1]);
    spin_end(&ms[1]);
}

MODEL(spinner_stops_while_other_sets, .setup = setup_spinner, .finish = forget_all,
      .threads = {sets, stops_spinning, m2_wakes}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* The one who is taken was the keeper: until then the setter may have counted on it. The timer that it
 * kept the time for has been stopped. */
static void setup_idle_keeper_is_taken(void)
{
    machine_setup(3);
    new_timer(1);
    machine_idle(2);
    machine_idle(1);
    ms[1].keeps = SOON_ENOUGH;
    at_store(&sched.keeper_until, SOON_ENOUGH, RELAXED);
}

static void takes_the_keeper(void)
{
    submit_foreign(2);
}

MODEL(keeper_is_taken_while_other_sets, .setup = setup_idle_keeper_is_taken, .finish = forget_all,
      .threads = {sets, m1_asleep, m2_wakes, takes_the_keeper}, .preemptions = MODEL_UNBOUNDED,
      .quick = 2)

/* --- stop, set and fire ------------------------------------------------------------------------------------------- */

static int was[2], fires[2];

static void setup_pending(int64_t period)
{
    machine_setup(2);
    new_timer(-1);
    set_in_setup(0, SOON_ENOUGH, period);
    memset(was, 0, sizeof was);
    memset(fires, 0, sizeof fires);
}

static void setup_pending_once(void)
{
    setup_pending(0);
}

static void setup_pending_period(void)
{
    setup_pending(3 * PIRN_MS);
}

static void setup_not_pending(void)
{
    setup_pending(0);
    CHECK(timer_stop(&timed->timer));
}

static void fires_first(void)
{
    set_current_m(&ms[0]);
    timers_run(&ps[0].timers, SOON_ENOUGH);
}

/* What fired is seen by who stops: under the lock, or by the heap that is NULL. */
static void stops_and_frees(void)
{
    was[0] = timer_stop(&timed->timer);
    fires[0] = timed->fired;
    free(timed);
}

static void stops(void)
{
    was[1] = timer_stop(&timed->timer);
}

static void fired_unless_stopped(void)
{
    CHECK(fires[0] == !was[0]);
    CHECK(ps[0].timers.n == 0 && timers_next() == PIRN_NEVER);
    free_heaps();
}

static void stopped_whether_fired_or_not(void)
{
    CHECK(was[0] && fires[0] <= 1);
    CHECK(ps[0].timers.n == 0 && timers_next() == PIRN_NEVER);
    free_heaps();
}

static void stopped_once(void)
{
    CHECK(was[0] + was[1] + timed->fired == 1);
    CHECK(ps[0].timers.n == 0 && timers_next() == PIRN_NEVER);
    free(timed);
    free_heaps();
}

static void stops_too(void)
{
    was[0] = timer_stop(&timed->timer);
}

#define SET(mname, setup_, finish_, ...)                                                           \
    MODEL(mname, .setup = setup_, .finish = finish_, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

SET(stop_against_fire, setup_pending_once, fired_unless_stopped, fires_first, stops_and_frees)
SET(stop_periodic_against_fire, setup_pending_period, stopped_whether_fired_or_not, fires_first,
    stops_and_frees)
SET(two_stops_against_fire, setup_pending_once, stopped_once, fires_first, stops, stops_too)

/* Sets it anew, on its own P: in the heap where it is, or its own. */
static void sets_on(int i, int64_t when)
{
    set_current_m(&ms[i]);
    was[i] = timer_set(&timed->timer, when, 0);
}

static void m0_sets(void)
{
    sets_on(0, LATER);
}
static void m1_sets(void)
{
    sets_on(1, LATER + PIRN_MS);
}

static bool pending_in(int i)
{
    const struct timers *h = &ps[i].timers;
    bool is = at_load(&timed->timer.heap, RELAXED) == h;
    CHECK(h->n == is);
    if (is) {
        CHECK(h->slot[0].who == (uintptr_t)&timed->timer && timed->timer.at == 0);
        CHECK(h->slot[0].when == timed->timer.when);
    }
    CHECK((int64_t)at_load(&h->next, RELAXED) == (is ? timed->timer.when : PIRN_NEVER));
    return is;
}

static void is_pending_once(void)
{
    CHECK(pending_in(0) + pending_in(1) == 1);
    free_heaps();
    free(timed);
}

/* The old time has come, or it was set before that. */
static void fired_or_was(void)
{
    CHECK(timed->fired + was[1] == 1);
    CHECK(pending_in(was[1] ? 0 : 1));
    CHECK(timed->timer.when == LATER + PIRN_MS);
    is_pending_once();
}

static void one_was(void)
{
    CHECK(was[0] + was[1] == 1);
    is_pending_once();
}

static void both_were(void)
{
    CHECK(was[0] && was[1] && pending_in(0));
    is_pending_once();
}

static void set_or_stopped(void)
{
    CHECK(timed->fired == 0);
    if (was[1]) { /* it was set before it was stopped */
        CHECK(!pending_in(0) && !pending_in(1));
        free_heaps();
        free(timed);
    } else {
        is_pending_once();
    }
}

SET(set_against_fire, setup_pending_once, fired_or_was, fires_first, m1_sets)
SET(set_against_set, setup_not_pending, one_was, m0_sets, m1_sets)
SET(set_against_set_of_pending, setup_pending_once, both_were, m0_sets, m1_sets)
SET(set_against_stop, setup_not_pending, set_or_stopped, m0_sets, stops)

static void fired_once_or_not(void)
{
    CHECK(timed->fired <= 1 && was[0] + was[1] + timed->fired == 2);
    is_pending_once();
}

static void fires_on_p0(void)
{
    set_current_m(&ms[2]);
    timers_run(&ps[0].timers, SOON_ENOUGH);
}

SET(two_sets_against_fire, setup_pending_once, fired_once_or_not, fires_on_p0, m0_sets, m1_sets)

/* --- a new P appears while somebody looks at all heaps ------------------------------------------------------- */

static void setup_new_p(void)
{
    machine_setup(2);
    at_store(&sched.nallp, 1, RELAXED);
    at_store(&sched.allp[1], NULL, RELAXED);
}

/* As in p.c. */
static void p_is_made(void)
{
    struct p *pp = &ps[1];
    memset(pp, 0, sizeof *pp);
    timers_init(&pp->timers);
    lock(&sched.lock);
    at_store(&sched.allp[1], pp, RELAXED);
    at_store(&sched.nallp, 2, RELEASE);
    unlock(&sched.lock);
}

static void looks_for_the_next(void)
{
    CHECK(timers_next() == PIRN_NEVER);
}

static void looks_at_all(void)
{
    set_current_m(&ms[0]);
    at_store(&ps[0].timers_due, 1, RELAXED);
    timers_look(&ps[0]);
}

SET(next_while_a_p_is_made, setup_new_p, NULL, p_is_made, looks_for_the_next)
SET(look_while_a_p_is_made, setup_new_p, NULL, p_is_made, looks_at_all)
