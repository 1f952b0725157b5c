/* SPDX-License-Identifier: MIT */
/*
 * Work that is only in runnext, and whose owner is busy for long: a waker may have left it out
 * (sched.futile in idle.c), then sysmon finds it.
 */
#include "machine_sysmon.h"

int64_t stack_trim(int64_t now)
{
    (void)now;
    return INT64_MAX;
}

void factory_want_procs(int n)
{
    model_fail("nobody changes the number of Ps, but %d are wanted", n);
}

static void busy(void)
{
    set_current_m(&ms[0]);
    runq_submit(&ps[0], new_g(1), true);
    wait_for(1);
    sysmon_stop();
}

static void setup(void)
{
    machine_setup(2);
    machine_sysmon();
}

static void setup_asleep(void)
{
    setup();
    machine_idle(1);
}

static void setup_futile(void)
{
    setup_asleep();
    at_store(&sched.futile, 1, RELAXED);
    ps[0].woke_at = coarse_now(); /* this tick has had its wake already */
}

#define NEXT(mname, setup_, ...)                                                                   \
    MODEL(mname, .setup = setup_, .finish = all_ran, .sleepers = 7, .threads = {__VA_ARGS__},      \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

NEXT(next_other_sleeps, setup_asleep, busy, m1_once, sysmon_thread)
NEXT(next_other_sleeps_futile, setup_futile, busy, m1_once, sysmon_thread)

/* The owner was busy before already. */
static void stops_sysmon(struct m *mp)
{
    (void)mp;
    sysmon_stop();
}

static void setup_there(void)
{
    setup();
    body[1] = stops_sysmon;
    runq_put_next_owner(&ps[0].runq, new_g(1));
}

static void setup_there_futile(void)
{
    setup_there();
    at_store(&sched.futile, 1, RELAXED);
}

NEXT(next_while_other_goes_to_sleep, setup_there, m1_once, sysmon_thread)
NEXT(next_while_other_goes_to_sleep_futile, setup_there_futile, m1_sleeps_once, sysmon_thread)
