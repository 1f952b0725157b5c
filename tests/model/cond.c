/* SPDX-License-Identifier: MIT */
/*
 * Conditions: a signal wakes one of those who wait, a broadcast all; who has begun to wait before
 * the signal is not passed over, and what was done before it is seen.
 *
 * With a deadline: a signal that does not wake the one whose time is up wakes another.
 *
 * The threads are foreign ones, without what surrounds their calls.
 */
#include <stdlib.h>

#include "foreign_lean.h"
#include "foreign_only.h"

/* --- an ideal mutex: mutex.c has models of its own --------------------------------------------------------- */

void pirn_mutex_lock(pirn_mutex *m)
{
    model_lock(m);
}

void mutex_lock_again(struct visit v, pirn_mutex *m)
{
    model_lock(m);
    visit_end(v);
}

void pirn_mutex_unlock(pirn_mutex *m)
{
    model_unlock(m);
}

bool mutex_unlock_visiting(pirn_mutex *m)
{
    model_unlock(m);
    return true;
}
_Noreturn void mutex_not_locked(void)
{
    model_fail("it is locked");
}

/* --- signals ------------------------------------------------------------------------------------------------- */

static struct {
    pirn_mutex mutex;
    pirn_cond cond;
} * o;
static int tokens;

static void begin(void)
{
    o = calloc(1, sizeof *o);
    tokens = 0;
}

static void end(void)
{
    CHECK(o->cond.state_ == 0 && !o->cond.waiters_);
    free(o);
}

static void end_without(void)
{
    CHECK(tokens == 0);
    end();
}

/* Who gets the lock must be the only one: else these are races. */
static void waits(void)
{
    pirn_mutex_lock(&o->mutex);
    while (!tokens) {
        pirn_cond_wait(&o->cond, &o->mutex);
    }
    pirn_mutex_unlock(&o->mutex);
}

static void takes(void)
{
    pirn_mutex_lock(&o->mutex);
    while (!tokens) {
        pirn_cond_wait(&o->cond, &o->mutex);
    }
    tokens--;
    pirn_mutex_unlock(&o->mutex);
}

static void puts_token(void)
{
    pirn_mutex_lock(&o->mutex);
    tokens++;
    pirn_mutex_unlock(&o->mutex);
}

static void signals(void)
{
    puts_token();
    pirn_cond_signal(&o->cond);
}

static void signals_under_the_lock(void)
{
    pirn_mutex_lock(&o->mutex);
    tokens++;
    pirn_cond_signal(&o->cond);
    pirn_mutex_unlock(&o->mutex);
}

static void signals_twice(void)
{
    signals();
    signals();
}

static void broadcasts(void)
{
    puts_token();
    pirn_cond_broadcast(&o->cond);
}

static void broadcasts_for_both(void)
{
    puts_token();
    puts_token();
    pirn_cond_broadcast(&o->cond);
}

#define COND(mname, finish_, ...)                                                                  \
    MODEL(mname, .setup = begin, .finish = finish_, .threads = {__VA_ARGS__}, .timeouts = 1,       \
          .preemptions = MODEL_UNBOUNDED, .quick = 2)

COND(signal, end_without, takes, signals)
COND(signal_under_the_lock, end_without, takes, signals_under_the_lock)
COND(signal_twice, end_without, takes, takes, signals_twice)
COND(two_signals, end_without, takes, takes, signals, signals)
COND(broadcast, end, waits, waits, broadcasts)

/* --- with a deadline ---------------------------------------------------------------------------------------- */

#define LATER 1000000

/* A token, or nothing in time. Who was woken by the signal and has no use for it passes it on. */
static void takes_until(void)
{
    int r = 0;
    pirn_mutex_lock(&o->mutex);
    while (!tokens && !(r = pirn_cond_wait_until(&o->cond, &o->mutex, LATER))) {
    }
    CHECK(r == 0 || r == -ETIMEDOUT);
    tokens -= tokens > 0;
    pirn_mutex_unlock(&o->mutex);
}

/* If this one has timed out, it has not been woken by the signal as well: another was. */
static void waits_until_and_passes_on(void)
{
    pirn_mutex_lock(&o->mutex);
    int r = tokens ? 0 : pirn_cond_wait_until(&o->cond, &o->mutex, LATER);
    pirn_mutex_unlock(&o->mutex);
    if (r == 0) {
        pirn_cond_signal(&o->cond);
    }
}

COND(signal_or_deadline, end, takes_until, signals)
COND(two_deadlines, end, takes_until, takes_until)
COND(signal_is_not_lost, end_without, waits_until_and_passes_on, takes, signals)
COND(broadcast_or_deadline, end, waits, takes_until, broadcasts_for_both)
