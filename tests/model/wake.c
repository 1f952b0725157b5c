/* SPDX-License-Identifier: MIT */
/*
 * The wake-up protocol of idle.c: work that was submitted is run, by another M if its own P is busy;
 * when all is done every M sleeps and nobody is left spinning.
 *
 * The thread "busy" stands for an M whose goroutine submits something and keeps its P until that
 * has run. The Ms beside it run find_work(), from its beginning or from their sleep.
 */
#include "machine.h"

static void submit(int i, bool next)
{
    runq_submit(&ps[0], new_g(i), next);
}

static void busy_ring(void)
{
    set_current_m(&ms[0]);
    submit(1, false);
    wait_for(1);
}

static void busy_next(void)
{
    set_current_m(&ms[0]);
    submit(1, true);
    wait_for(1);
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

static void setup_second_asleep(void)
{
    machine_setup(2);
    machine_idle(1);
}

static void setup_third_asleep(void)
{
    machine_setup(3);
    machine_idle(2);
}

static void setup_two_of_three_asleep(void)
{
    machine_setup(3);
    machine_idle(1);
    machine_idle(2);
}

#define WAKE(mname, setup_, ...)                                                                   \
    MODEL(mname, .setup = setup_, .finish = all_ran, .sleepers = 7, .threads = {__VA_ARGS__},      \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* --- submitted by a goroutine ---------------------------------------------------------------------------- */

WAKE(ring_while_other_goes_to_sleep, setup_two, busy_ring, m1)
WAKE(ring_while_other_sleeps, setup_second_asleep, busy_ring, m1)
WAKE(next_while_other_sleeps, setup_second_asleep, busy_next, m1)

/* PIRN_DEBUG=move: by the global queue. */
static void setup_move(void)
{
    setup_second_asleep();
    sched.move = true;
}

WAKE(moved_while_other_sleeps, setup_move, busy_next, m1)

/* The ring is full: half of it goes to the global queue. */
static void setup_full(void)
{
    setup_two();
    for (int i = 0; i < 4; i++) {
        CHECK(runq_put_owner(&ps[0].runq, new_g(i)));
    }
}

static void busy_overflows(void)
{
    set_current_m(&ms[0]);
    submit(4, false);
    wait_for(0);
}

static void first_ran(void)
{
    CHECK(gs[0].creator == 1);
    CHECK(at_load(&sched.nspinning, RELAXED) == 0);
}

MODEL(overflow_while_other_goes_to_sleep, .setup = setup_full, .finish = first_ran, .sleepers = 3,
      .threads = {busy_overflows, m1_until}, .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* The slice is over: runnext goes to the ring, behind the one that is chosen. */
static void busy_slice(void)
{
    set_current_m(&ms[0]);
    submit(1, false);
    submit(2, true);
    at_store(&ps[0].slice_over, 1, RELAXED);
    struct g *gp = next_local(&ps[0]);
    if (gp) {
        note_run((int)(gp - gs));
    }
    wait_for(1);
    wait_for(2);
}

WAKE(end_of_slice, setup_two, busy_slice, m1_once)

/* --- moved from queue to queue, and in between in neither: [W3] -------------------------------------------- */

static void setup_batch(void)
{
    machine_setup(2);
    for (int i = 0; i < 3; i++) {
        globq_put_locked(&sched.globq, new_g(i));
    }
}

static void busy_batch(void)
{
    set_current_m(&ms[0]);
    struct g *gp = next_local(&ps[0]);
    if (gp) {
        note_run((int)(gp - gs));
    }
    for (int i = 0; i < 3; i++) {
        wait_for(i);
    }
}

WAKE(batch_while_other_goes_to_sleep, setup_batch, busy_batch, m1)

/* Steals more than it runs. */
static void setup_loot(void)
{
    machine_setup(3);
    machine_idle(2);
    at_store(&sched.nspinning, 1, RELAXED);
    ms[1].spinning = true;
    for (int i = 0; i < 4; i++) {
        runq_put_owner(&ps[0].runq, new_g(i));
    }
}

static void busy_thief(void)
{
    set_current_m(&ms[1]);
    note_run((int)(find_work(&ms[1]) - gs));
    for (int i = 0; i < 4; i++) {
        wait_for(i);
    }
}

/* The same for a thief that was never counted as a spinner. */
static void setup_loot_of_one_not_spinning(void)
{
    setup_loot();
    at_store(&sched.nspinning, 0, RELAXED);
    ms[1].spinning = false;
}

WAKE(thief_with_loot, setup_loot, busy_thief, m2)
WAKE(thief_with_loot_not_spinning, setup_loot_of_one_not_spinning, busy_thief, m2)

/* --- who spins finds work, and there is more: [W3] ------------------------------------------------------------- */

static void setup_spinner(void)
{
    machine_setup(3);
    machine_idle(2);
    at_store(&sched.nspinning, 1, RELAXED);
    ms[1].spinning = true;
}

static void busy_spinner(void)
{
    set_current_m(&ms[1]);
    spin_end(&ms[1]);
    wait_for(1);
}

WAKE(spinner_stops_while_other_submits, setup_spinner, busy_ring, busy_spinner, m2)

/* The last of the global queue is taken in two batches: what is in the ring since the first must be
 * seen. M 0 and M 1 keep their Ps without waiting for it, which is as strict here, as nobody else but
 * M 2 can run it, and a thousandth of the executions. */
static void setup_batches(void)
{
    setup_spinner();
    globq_put_locked(&sched.globq, new_g(1));
    globq_put_locked(&sched.globq, new_g(0));
    globq_put_locked(&sched.globq, new_g(2));
}

static void busy_batches(void)
{
    struct g *gp;
    set_current_m(&ms[0]);
    for (int i = 0; i < 2; i++) {
        if ((gp = next_global(&ps[0], RING / 2))) {
            note_run((int)(gp - gs));
        }
    }
}

static void busy_spinner_other(void)
{
    set_current_m(&ms[1]);
    spin_end(&ms[1]);
}

MODEL(spinner_stops_while_other_takes_batches, .setup = setup_batches, .finish = first_ran,
      .sleepers = 7, .threads = {busy_batches, busy_spinner_other, m2_until},
      .preemptions = MODEL_UNBOUNDED, .quick = 2)

/* Whoever is woken waits for the other goroutine: so it must wake another. */
static void busy_two(void)
{
    busy_ring();
    wait_for(2);
}

static void waits_for_one(struct m *mp)
{
    (void)mp;
    wait_for(1);
}

static void waits_for_two(struct m *mp)
{
    (void)mp;
    wait_for(2);
}

static void setup_word(void)
{
    setup_two_of_three_asleep();
    body[1] = waits_for_two;
    body[2] = waits_for_one;
    runq_put_owner(&ps[0].runq, new_g(2));
}

WAKE(word_is_passed_on, setup_word, busy_two, m1_once, m2_once)
WAKE(one_sleeps_one_goes_to_sleep, setup_third_asleep, busy_ring, m1_once, m2_once)

/* --- a P is passed on with what to run first ---------------------------------------------------------- */

static void hands_off(void)
{
    set_current_m(&ms[0]);
    m_hand_off(&ms[0], new_g(1));
    model_fail("nobody gave the P back");
}

static void heir_ran(void)
{
    CHECK(gs[1].creator == 1);
    CHECK(sched.nmidle == 2 && sched.pidle == &ps[0]);
}

MODEL(hand_off, .setup = machine_setup_one_p, .finish = heir_ran, .sleepers = 3,
      .threads = {hands_off, m1}, .preemptions = MODEL_UNBOUNDED)

/* --- submitted by a foreign thread --------------------------------------------------------------------------------- */

static void foreign(void)
{
    submit_foreign(0);
}

static void foreign_second(void)
{
    submit_foreign(1);
}

#define REST(mname, setup_, ...)                                                                   \
    MODEL(mname, .setup = setup_, .finish = all_at_rest, .sleepers = 3, .threads = {__VA_ARGS__},  \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

REST(foreign_and_one, setup_one, m0, foreign)
REST(foreign_and_one_asleep, setup_one_asleep, m0, foreign)
REST(foreign_and_two_asleep, setup_two_asleep, m0, m1, foreign)
REST(foreign_and_one_of_two_asleep, setup_second_asleep, m0, m1, foreign)
REST(two_foreign_and_one, setup_one_asleep, m0, foreign, foreign_second)

static void setup_second_spins(void)
{
    setup_two();
    at_store(&sched.nspinning, 1, RELAXED);
    ms[1].spinning = true;
}

WAKE(foreign_and_two, setup_two, m0_once, m1_once, foreign)
WAKE(foreign_and_two_go_to_sleep, setup_two, m0_sleeps_once, m1_sleeps_once, foreign)
WAKE(foreign_and_spinner_go_to_sleep, setup_second_spins, m0_sleeps_once, m1_sleeps_once, foreign)
WAKE(two_foreign_and_two, setup_two_asleep, m0_once, m1_once, foreign, foreign_second)
