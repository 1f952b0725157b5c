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

#define NEXT(mname, setup_, thief)                                                                 \
    MODEL(mname, .setup = setup_, .finish = all_ran, .sleepers = 7,                                \
          .threads = {busy, thief, sysmon_thread}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

NEXT(next_other_sleeps, setup_asleep, m1_once)
NEXT(next_other_sleeps_futile, setup_futile, m1_once)
NEXT(next_other_goes_to_sleep, setup, m1_sleeps_once)
