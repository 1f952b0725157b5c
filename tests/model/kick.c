/* SPDX-License-Identifier: MIT */
/*
 * The two threads that serve the others and sleep when there is nothing to do: a kick that comes while
 * sysmon goes into its deep sleep is not lost ([S1], [S2] in sysmon.c), nor is a request to the
 * factory, nor the word to stop.
 */
#define MACHINE_FACTORY
#include "machine_sysmon.h"

#include "../../src/sched/factory.c"

static at_u32 looked, served;

static void tell(at_u32 *word)
{
    at_store(word, 1, RELEASE);
    futex_wake(word, 1);
}

static void wait_until_told(at_u32 *word)
{
    while (!at_load(word, ACQUIRE)) {
        futex_wait(word, 0, INT64_MAX);
    }
}

/* --- sysmon -------------------------------------------------------------------------------------------- */

static at_u32 to_trim;

/* Called at each look: does it see that a P runs, or that there is something to trim? */
int64_t stack_trim(int64_t now)
{
    (void)now;
    if ((at_load(&sched.nallp, ACQUIRE) && at_load(&ps[0].status, RELAXED) == P_RUNNING)
        || at_load(&to_trim, RELAXED)) {
        tell(&looked);
    }
    return INT64_MAX;
}

static void setup_sysmon(void)
{
    machine_setup(1);
    machine_idle(0);
    machine_sysmon();
    at_store(&looked, 0, RELAXED);
    at_store(&to_trim, 0, RELAXED);
}

static void p_starts(void)
{
    lock(&sched.lock);
    CHECK(pidle_get_locked() == &ps[0]);
    unlock(&sched.lock);
    wait_until_told(&looked);
    sysmon_stop();
}

/* As pool_give() does, from whatever thread. */
static void leaves_something_to_trim(void)
{
    at_store(&to_trim, 1, RELAXED);
    sysmon_kick();
    wait_until_told(&looked);
    sysmon_stop();
}

static void stops_at_once(void)
{
    sysmon_stop();
}

MODEL(sysmon_sees_a_p_start, .setup = setup_sysmon, .threads = {sysmon_thread, p_starts},
      .preemptions = MODEL_UNBOUNDED, .quick = 3)
MODEL(sysmon_sees_what_to_trim, .setup = setup_sysmon,
      .threads = {sysmon_thread, leaves_something_to_trim}, .preemptions = MODEL_UNBOUNDED,
      .quick = 3)
MODEL(sysmon_is_stopped, .setup = setup_sysmon, .threads = {sysmon_thread, stops_at_once},
      .preemptions = MODEL_UNBOUNDED, .quick = 3)

/* A new P appears while sysmon walks over all of them. */
static void setup_new_p(void)
{
    setup_sysmon();
    at_store(&sched.nallp, 0, RELAXED);
    at_store(&sched.allp[0], NULL, RELAXED);
}

static void p_is_made(void)
{
    struct p *pp = &ps[0];
    memset(pp, 0, sizeof *pp);
    lock(&sched.lock);
    at_store(&sched.allp[0], pp, RELAXED);
    at_store(&sched.nallp, 1, RELEASE); /* as in p.c */
    unlock(&sched.lock);
    sysmon_stop();
}

MODEL(sysmon_meets_a_new_p, .setup = setup_new_p, .threads = {sysmon_thread, p_is_made},
      .preemptions = MODEL_UNBOUNDED, .quick = 3)

/* --- the factory ------------------------------------------------------------------------------------------ */

static bool no_thread;

int m_start(struct p *pp, bool born)
{
    CHECK(!pp && born);
    if (no_thread) {
        return -EAGAIN;
    }
    factory_born(&ms[2]); /* the thread, at once */
    CHECK(ms[2].p == &ps[0] || ms[2].p == &ps[1]);
    ms[2].p = NULL;
    if (at_add(&served, 1, ACQ_REL) + 1 == 2) {
        futex_wake(&served, 1);
    }
    return 0;
}

int p_resize(int n, struct p *mine, bool follow)
{
    CHECK(n == 3 && !mine && follow);
    at_add(&served, 1, ACQ_REL);
    futex_wake(&served, 1);
    return 1;
}

void p_put_back_locked(struct p *pp)
{
    pidle_put_locked(pp);
    at_add(&served, 1, ACQ_REL);
}

static void setup_factory(void)
{
    machine_setup(2);
    memset(&factory, 0, sizeof factory);
    memset(&sysmon, 0, sizeof sysmon);
    at_store(&served, 0, RELAXED);
    no_thread = false;
    factory_start();
}

static void setup_factory_fails(void)
{
    setup_factory();
    no_thread = true;
}

static void factory_thread(void)
{
    factory_main(NULL);
}

static void want(int i)
{
    lock(&sched.lock);
    factory_want_locked(&ps[i], NULL, false);
    unlock(&sched.lock);
}

static void wait_for_served(uint32_t n)
{
    for (uint32_t s; (s = at_load(&served, ACQUIRE)) < n;) {
        futex_wait(&served, s, INT64_MAX);
    }
}

static void wants_two(void)
{
    want(0);
    want(1);
    wait_for_served(2);
    factory_stop();
}

static void wants_one(void)
{
    want(0);
}

static void wants_one_and_stops(void)
{
    want(1);
    wait_for_served(2);
    factory_stop();
}

static void wants_procs(void)
{
    factory_want_procs(3);
    wait_for_served(1);
    factory_stop();
}

static void stops_factory(void)
{
    factory_stop();
}

static void nobody_waits(void)
{
    CHECK(sched.nwant_m == 0 && !sched.want_m);
}

MODEL(factory_serves_two, .setup = setup_factory, .finish = nobody_waits,
      .threads = {factory_thread, wants_two}, .preemptions = MODEL_UNBOUNDED)
MODEL(factory_serves_two_askers, .setup = setup_factory, .finish = nobody_waits,
      .threads = {factory_thread, wants_one, wants_one_and_stops}, .preemptions = MODEL_UNBOUNDED,
      .quick = 3)
MODEL(factory_changes_procs, .setup = setup_factory, .threads = {factory_thread, wants_procs},
      .preemptions = MODEL_UNBOUNDED)
MODEL(factory_is_stopped, .setup = setup_factory, .threads = {factory_thread, stops_factory},
      .preemptions = MODEL_UNBOUNDED)

/* No thread can be made, but one sleeps: it gets the P. */
static void setup_factory_fails_one_sleeps(void)
{
    setup_factory_fails();
    struct m *mp = &ms[1];
    mp->p = NULL;
    mp->idle = true;
    sched.midle = mp;
    sched.nmidle = 1;
}

static void sleeper(void)
{
    note_wait(&ms[1].park);
    CHECK(ms[1].nextp == &ps[0]);
    factory_stop();
}

MODEL(factory_fails_one_sleeps, .setup = setup_factory_fails_one_sleeps, .finish = nobody_waits,
      .threads = {factory_thread, wants_one, sleeper}, .preemptions = MODEL_UNBOUNDED, .quick = 3)

/* No thread can be made: the P is idle again, and the request is off the list. */
static void wants_in_vain(void)
{
    want(0);
    while (at_load(&served, ACQUIRE) < 1) {
        at_pause();
    }
    factory_stop();
}

static void p_is_idle(void)
{
    nobody_waits();
    CHECK(sched.pidle == &ps[0]);
}

MODEL(factory_fails, .setup = setup_factory_fails, .finish = p_is_idle,
      .threads = {factory_thread, wants_in_vain}, .preemptions = MODEL_UNBOUNDED, .quick = 3)
