/* SPDX-License-Identifier: MIT */
/*
 * Conditions: a signal wakes one of those who wait, a broadcast all; who has begun to wait before
 * the signal is not passed over, and what was done before it is seen.
 *
 * The threads are foreign ones, without what surrounds their calls.
 */
#include <stdlib.h>

#include "foreign_lean.h"
#include "foreign_only.h"

static struct {
    pirn_mutex mutex;
    pirn_cond cond;
} *o;
static int counter;

static void begin(void)
{
    o = calloc(1, sizeof *o);
    counter = 0;
    at_store(&sched.nprocs, 1, RELAXED);
}

static void end(void)
{
    CHECK(o->cond.state_ == 0 && !o->cond.waiters_);
    free(o);
}

#define COND(mname, ...)                                                                           \
    MODEL(mname, .setup = begin, .finish = end, .threads = {__VA_ARGS__},                          \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

static void waits(void)
{
    pirn_mutex_lock(&o->mutex);
    while (!counter) {
        pirn_cond_wait(&o->cond, &o->mutex);
    }
    pirn_mutex_unlock(&o->mutex);
}

static void signals(void)
{
    pirn_mutex_lock(&o->mutex);
    counter = 1;
    pirn_mutex_unlock(&o->mutex);
    pirn_cond_signal(&o->cond);
}

static void broadcasts(void)
{
    pirn_mutex_lock(&o->mutex);
    counter = 1;
    pirn_cond_broadcast(&o->cond);
    pirn_mutex_unlock(&o->mutex);
}

COND(signal, waits, signals)
COND(broadcast, waits, waits, broadcasts)
