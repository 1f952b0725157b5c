/* SPDX-License-Identifier: MIT */
/*
 * Threads that pirn did not make, against the stop: [F1] in foreign.c. What the runtime owns is freed
 * only when no call is under way, and a call that begins later is refused; or it waits, while the
 * stop may still be taken back.
 */
#include <stdlib.h>

#include "explorer/model.h"
#include "sched/sched.h"

struct sched sched;
static int *owned; /* stands for all that a call may touch */

void deadlock_check_locked(uint32_t mine)
{
    (void)mine;
}

static void setup(void)
{
    memset(&sched, 0, sizeof sched);
    at_store(&sched.life, LIFE_RUNNING, RELAXED);
    owned = malloc(sizeof *owned);
    *owned = 1;
}

static void call(void)
{
    if (foreign_enter()) {
        CHECK(*owned == 1);
        foreign_leave();
    }
}

static void call_twice(void)
{
    call();
    call();
}

static void stop(void)
{
    foreign_drain();
    at_store(&sched.life, LIFE_STOPPING, SEQ_CST);
    *owned = 0;
    free(owned);
    at_store(&sched.life, LIFE_NONE, RELAXED);
}

static void stop_is_refused(void)
{
    foreign_drain();
    *owned = 2; /* nobody looks */
    *owned = 1;
    at_store(&sched.life, LIFE_RUNNING, SEQ_CST);
}

static void call_must_pass(void)
{
    CHECK(foreign_enter());
    CHECK(*owned == 1);
    foreign_leave();
}

static void none_left(void)
{
    CHECK(at_load(&sched.nforeign, RELAXED) == 0);
}

MODEL(stop_and_call, .setup = setup, .finish = none_left, .threads = {call_twice, stop},
      .preemptions = MODEL_UNBOUNDED)
MODEL(stop_and_two_calls, .setup = setup, .finish = none_left, .threads = {call, call, stop},
      .preemptions = MODEL_UNBOUNDED)
MODEL(refused_stop, .setup = setup, .finish = none_left, .leaks = true,
      .threads = {call_must_pass, stop_is_refused}, .preemptions = MODEL_UNBOUNDED)

/* --- waiting: the waker counts the thread as awake before it is ----------------------------------------- */

static struct waiter waiter;
static int said;
static at_u32 found; /* as if it were in a queue */

static bool commit(struct g *gp, void *arg)
{
    (void)gp;
    (void)arg;
    at_store(&found, 1, RELEASE);
    return true;
}

static void setup_wait(void)
{
    setup();
    memset(&waiter, 0, sizeof waiter);
    said = 0;
    at_store(&found, 0, RELAXED);
}

static void waits(void)
{
    CHECK(foreign_enter());
    foreign_park(&waiter, true, commit, NULL, PIRN_NEVER);
    CHECK(said == 1);
}

static void wakes(void)
{
    while (!at_load(&found, ACQUIRE)) {
        at_pause();
    }
    said = 1;
    foreign_ready(&waiter);
}

static void all_awake(void)
{
    none_left();
    CHECK(at_load(&sched.nforeign_parked, RELAXED) == 0);
}

MODEL(park_and_ready, .setup = setup_wait, .finish = all_awake, .threads = {waits, wakes},
      .leaks = true, .spurious = 1, .preemptions = MODEL_UNBOUNDED)

/* The commit says that there is no need to wait. */
static bool commit_refuses(struct g *gp, void *arg)
{
    (void)gp;
    (void)arg;
    return false;
}

static void waits_in_vain(void)
{
    CHECK(foreign_enter());
    CHECK(foreign_park(&waiter, true, commit_refuses, NULL, PIRN_NEVER));
}

MODEL(park_in_vain, .setup = setup_wait, .finish = all_awake, .threads = {waits_in_vain},
      .leaks = true, .preemptions = MODEL_UNBOUNDED)
