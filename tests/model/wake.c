/* SPDX-License-Identifier: MIT */
/*
 * The wake-up protocol of idle.c: work that was submitted is run, by another M if its own P is busy;
 * at most one M spins; when all is done every M sleeps, on the list, and nobody spins.
 */
#include "machine.h"

/* --- a goroutine submits, and keeps its P busy until the other has run -------------------------------- */

static void submits_ring(struct m *mp)
{
    runq_submit(mp->p, new_g(1), false);
    wait_for(1);
}

static void submits_next(struct m *mp)
{
    runq_submit(mp->p, new_g(1), true);
    wait_for(1);
}

static void setup_busy(void)
{
    machine_setup(2);
    body[0] = submits_ring;
    runq_put_owner(&ps[0].runq, new_g(0));
}

static void setup_busy_asleep(void)
{
    setup_busy();
    machine_idle(1);
}

static void setup_busy_next(void)
{
    setup_busy();
    body[0] = submits_next;
}

static void setup_busy_next_asleep(void)
{
    setup_busy_next();
    machine_idle(1);
}

#define WAKE(mname, setup_, ...)                                                                   \
    MODEL(mname, .setup = setup_, .finish = all_ran, .sleepers = 7, .threads = {__VA_ARGS__},      \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

WAKE(submit_while_other_goes_to_sleep, setup_busy, m0, m1)
WAKE(submit_while_other_sleeps, setup_busy_asleep, m0, m1)
WAKE(submit_next_while_other_sleeps, setup_busy_next_asleep, m0, m1)

/* --- a foreign thread submits while the Ms go to sleep ------------------------------------------------------ */

static void foreign(void)
{
    submit_foreign(0);
}

static void setup_one(void)
{
    machine_setup(1);
}

static void setup_two(void)
{
    machine_setup(2);
}

static void setup_one_asleep(void)
{
    machine_setup(1);
    machine_idle(0);
}

static void setup_two_asleep(void)
{
    machine_setup(2);
    machine_idle(0);
    machine_idle(1);
}

static void setup_one_of_two_asleep(void)
{
    machine_setup(2);
    machine_idle(1);
}

WAKE(foreign_and_one, setup_one, m0, foreign)
WAKE(foreign_and_one_asleep, setup_one_asleep, m0, foreign)
WAKE(foreign_and_two_asleep, setup_two_asleep, m0, m1, foreign)
WAKE(foreign_and_one_of_two_asleep, setup_one_of_two_asleep, m0, m1, foreign)
WAKE(foreign_and_two, setup_two, m0, m1, foreign)

/* --- who found work passes the word on: [W3] -------------------------------------------------------------- */

static void submits_two(struct m *mp)
{
    runq_submit(mp->p, new_g(1), false);
    runq_submit(mp->p, new_g(2), false);
    wait_for(1);
    wait_for(2);
}

static void waits_for_two(struct m *mp)
{
    (void)mp;
    wait_for(2);
}

static void setup_three(void)
{
    machine_setup(3);
    machine_idle(1);
    machine_idle(2);
    body[0] = submits_two;
    body[1] = waits_for_two;
    runq_put_owner(&ps[0].runq, new_g(0));
}

/* The global queue holds three, of which the first M takes two; each waits for the next. */
static void waits_for_one(struct m *mp)
{
    (void)mp;
    wait_for(1);
}

static void setup_batch(void)
{
    machine_setup(2);
    machine_idle(1);
    body[0] = waits_for_one;
    for (int i = 0; i < 3; i++) {
        globq_put_locked(&sched.globq, new_g(i));
    }
}

/* A full ring overflows into the global queue, from where the other must fetch. */
static void overflows(struct m *mp)
{
    for (int i = 1; i < 6; i++) {
        runq_submit(mp->p, new_g(i), false);
    }
    wait_for(1);
}

static void setup_overflow(void)
{
    machine_setup(2);
    machine_idle(1);
    body[0] = overflows;
    runq_put_owner(&ps[0].runq, new_g(0));
}

/* A slice that is over sends runnext to the ring. */
static void submits_next_after_slice(struct m *mp)
{
    runq_submit(mp->p, new_g(1), true);
    runq_submit(mp->p, new_g(2), false);
}

static void setup_slice(void)
{
    machine_setup(2);
    machine_idle(1);
    at_store(&ps[0].slice_over, 1, RELAXED);
    body[0] = submits_next_after_slice;
    body[2] = waits_for_one;
    runq_put_owner(&ps[0].runq, new_g(0));
}

static void foreign_second(void)
{
    submit_foreign(1);
}

WAKE(word_is_passed_on, setup_three, m0, m1, m2)
WAKE(batch_wakes, setup_batch, m0, m1)
WAKE(overflow_wakes, setup_overflow, m0, m1)
WAKE(end_of_slice, setup_slice, m0, m1)
WAKE(two_foreign_and_one, setup_one_asleep, m0, foreign, foreign_second)
WAKE(two_foreign_and_two, setup_two_asleep, m0, m1, foreign, foreign_second)
