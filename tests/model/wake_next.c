/* SPDX-License-Identifier: MIT */
/*
 * Work that is only in runnext, and whose owner is busy for long: a waker may have left it out
 * (sched.futile in idle.c), then sysmon finds it. So here sysmon's own loop is one of the threads,
 * deep sleep included; its time passes when nobody else can go on.
 */
#define MACHINE_SYSMON
#include "machine.h"

#include "../../src/sched/sysmon.c"

int cpu_limit_count(const struct cpu_limit *c)
{
    (void)c;
    return (int)at_load(&sched.nprocs, RELAXED);
}

void cpu_limit_open(struct cpu_limit *c)
{
    (void)c;
}

int64_t stack_trim(int64_t now)
{
    (void)now;
    return INT64_MAX;
}

int thread_create(pthread_t *out, const char *name, void *(*fn)(void *), void *arg,
                  bool block_signals)
{
    (void)out, (void)name, (void)fn, (void)arg, (void)block_signals;
    return 0;
}

void factory_want_procs(int n)
{
    model_fail("nobody changes the number of Ps, but %d are wanted", n);
}

static void sysmon_thread(void)
{
    sysmon_main(NULL);
}

static void submits_next(struct m *mp)
{
    runq_submit(mp->p, new_g(1), true);
    wait_for(1);
}

static void setup(void)
{
    machine_setup(2);
    memset(&sysmon, 0, sizeof sysmon);
    sysmon_start();
    body[0] = submits_next;
    runq_put_owner(&ps[0].runq, new_g(0));
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

#define NEXT(mname, setup_)                                                                        \
    MODEL(mname, .setup = setup_, .finish = all_ran, .sleepers = 7,                                \
          .threads = {m0, m1, sysmon_thread}, .preemptions = MODEL_UNBOUNDED, .quick = 1)

NEXT(next_other_sleeps, setup_asleep)
NEXT(next_other_sleeps_futile, setup_futile)
NEXT(next_other_goes_to_sleep, setup)
