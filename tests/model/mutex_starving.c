/* SPDX-License-Identifier: MIT */
/*
 * A mutex of which one has waited for long: it is passed from hand to hand, nobody who comes along
 * takes it meanwhile, and it goes back to normal. Any wait may be a long one here.
 *
 * The threads are foreign ones, without what surrounds their calls.
 */
#include <stdlib.h>

#include "foreign_lean.h"
#include "foreign_only.h"

/* Each look at the clock comes early or late. */
static int64_t any_time(void)
{
    return model_pick(2) ? 2 * PIRN_MS : 0;
}

#define now_ns() any_time()
#include "../../src/sync/mutex.c"

static pirn_mutex *m;
static int counter, wanted;
static bool failed; /* to lock */

static void begin(int n)
{
    m = calloc(1, sizeof *m);
    m->state_ = HELD;
    counter = 0;
    wanted = n;
    failed = false;
    at_store(&sched.nprocs, 1, RELAXED);
}

static void begin_two(void)
{
    begin(2);
}
static void begin_three(void)
{
    begin(3);
}

static void unlocks(void)
{
    counter++;
    pirn_mutex_unlock(m);
}

static void adds(void)
{
    pirn_mutex_lock(m);
    counter++;
    pirn_mutex_unlock(m);
}

static void tries(void)
{
    if (pirn_mutex_try_lock(m)) {
        counter++;
        pirn_mutex_unlock(m);
    } else {
        failed = true;
    }
}

static void at_rest(void)
{
    CHECK(counter == wanted - failed);
    CHECK(m->state_ == 0 && !m->waiters_);
    free(m);
}

#define STARVING_MODEL(mname, setup_, ...)                                                         \
    MODEL(mname, .setup = setup_, .finish = at_rest, .threads = {__VA_ARGS__},                     \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

STARVING_MODEL(one_waits, begin_two, unlocks, adds)
STARVING_MODEL(one_waits_one_comes, begin_three, unlocks, adds, adds)
STARVING_MODEL(one_waits_one_tries, begin_three, unlocks, adds, tries)
