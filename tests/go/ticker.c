/* SPDX-License-Identifier: MIT */
/*
 * Tickers, as Go's tests want them. What can be said without knowing how fast the machine is: the n-th
 * tick is not received before n periods have passed, and in any span there are not more ticks than
 * periods, and one that was kept.
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "timers.h"

static int try_get(pirn_ticker *t)
{
    return pirn_chan_try_recv(pirn_ticker_chan(t), NULL);
}

/* n ticks of a ticker that was set at `set` or later. */
static void must_tick(pirn_ticker *t, pirn_ns set, pirn_ns period, int n)
{
    for (int i = 1; i <= n; i++) {
        pirn_ns v;
        CHECK(pirn_chan_recv(pirn_ticker_chan(t), &v));
        CHECK_GE(v - set, i * period);
        CHECK_GE(pirn_now(), v);
    }
}

/* --- the rate ------------------------------------------------------------------------------------------ */

static void tick_at(pirn_ns period)
{
    pirn_ns start = pirn_now();
    pirn_ticker *t = pirn_ticker_new(period);
    must_tick(t, start, period, 10);
    pirn_ticker_free(t);
}

TEST_RUN_ATTR(never_early, PROCS)
{
    static const pirn_ns periods[] = {1, 100, PIRN_US, 50 * PIRN_US, PIRN_MS, 3 * PIRN_MS};
    pirn_wg wg = {0};
    for (unsigned i = 0; i < sizeof periods / sizeof *periods; i++)
        pirn_wg_go(&wg, tick_at, periods[i]);
    pirn_wg_wait(&wg);
}

/* Not received in time is dropped: one is kept, and there is no burst. */
TEST_RUN_ATTR(slow_consumer, PROCS)
{
    pirn_ns period = 500 * PIRN_US;
    pirn_ticker *t = pirn_ticker_new(period);
    for (int round = 0; round < 10; round++) {
        pirn_sleep(10 * period);
        pirn_ns begin = pirn_now(), n = 0;
        pirn_chan_get(pirn_ticker_chan(t));
        do
            n++;
        while (try_get(t));
        CHECK_LE(n, (pirn_now() - begin) / period + 4); /* kept, on their way */
        pirn_chan_get(pirn_ticker_chan(t));             /* it goes on */
    }
    pirn_ticker_free(t);
}

TEST_RUN_ATTR(shortest_period, PROCS)
{
    pirn_ticker *t = pirn_ticker_new(1);
    for (int i = 0; i < 1000; i++)
        pirn_chan_get(pirn_ticker_chan(t));
    pirn_ticker_stop(t);
    CHECK_EQ(try_get(t), 0);
    pirn_ticker_free(t);
}

static void compute_beside(pirn_ns when, atomic_int *begun)
{
    atomic_fetch_add(begun, 1);
    compute_until(when);
}

/*
 * True: the first tick was late by half a period at least, and the second came sooner than a period after
 * it. If each came a period after the one before, that could never be.
 */
static bool keeps_its_rhythm(pirn_ns period)
{
    int procs = pirn_procs(0);
    atomic_int begun = 0;
    pirn_wg wg = {0};
    pirn_ns start = pirn_now(), first, second;
    pirn_ticker *t = pirn_ticker_new(period);
    for (int i = 1; i < procs; i++)
        pirn_wg_go(&wg, compute_beside, start + 3 * period / 2, &begun);
    while (atomic_load(&begun) < procs - 1)
        pirn_yield();
    compute_until(start + 3 * period / 2); /* no P is left to fire it in time */
    CHECK(pirn_chan_recv(pirn_ticker_chan(t), &first));
    CHECK(pirn_chan_recv(pirn_ticker_chan(t), &second));
    CHECK_GE(first, start + period);
    CHECK_GE(second, start + 2 * period);
    pirn_wg_wait(&wg);
    pirn_ticker_free(t);
    return first >= start + 3 * period / 2 && second < first + period;
}

/*
 * A tick that is late does not make the next one late. Once is enough; load beside the test may put off the
 * second tick by more than half a period, so the periods become longer. (Those that compute must keep their
 * Ps: preempted they would let the first tick be in time.)
 */
TEST_RUN_ATTR(no_drift, PROCS, .env = "PIRN_DEBUG=preempt=off", .timeout = 60, .alone = true)
{
    pirn_ns period = 20 * PIRN_MS;
    while (!keeps_its_rhythm(period)) {
        period += period / 2;
        CHECK_LT(period, 5 * PIRN_SEC);
    }
}

/* --- stop and reset -------------------------------------------------------------------------------------- */

TEST_RUN_ATTR(stop_and_reset, PROCS)
{
    pirn_ns start = pirn_now();
    pirn_ticker *t = pirn_ticker_new(PIRN_MS);
    must_tick(t, start, PIRN_MS, 2);
    start = pirn_now();
    pirn_ticker_reset(t, 2 * PIRN_MS); /* counts from now */
    must_tick(t, start, 2 * PIRN_MS, 3);
    start = pirn_now();
    pirn_ticker_reset(t, 100 * PIRN_US);
    must_tick(t, start, 100 * PIRN_US, 10);
    pirn_ticker_stop(t);
    pirn_ticker_stop(t);
    CHECK_EQ(try_get(t), 0);
    pirn_sleep(PIRN_MS);
    CHECK_EQ(try_get(t), 0);
    CHECK_EQ(pirn_select(PIRN_RECV(pirn_ticker_chan(t), NULL), PIRN_AFTER(PIRN_MS)), 1);
    start = pirn_now();
    pirn_ticker_reset(t, PIRN_MS); /* and it begins again */
    must_tick(t, start, PIRN_MS, 2);
    pirn_ticker_reset(t, HOUR);
    CHECK_EQ(pirn_select(PIRN_RECV(pirn_ticker_chan(t), NULL), PIRN_AFTER(3 * PIRN_MS)), 1);
    pirn_ticker_free(t);
}

TEST_RUN_ATTR(looks_unbuffered, PROCS)
{
    pirn_ticker *t = pirn_ticker_new(1);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pirn_chan_len(pirn_ticker_chan(t)), 0);
        CHECK_EQ(pirn_chan_cap(pirn_ticker_chan(t)), 0);
        pirn_sleep(10 * PIRN_US);
    }
    pirn_ticker_free(t);
}

static void fire_for_others(atomic_bool *end)
{
    while (!atomic_load(end))
        pirn_yield();
}

/* A tick that was sent, or is on its way, is not received after a stop or a reset. */
TEST_RUN_ATTR(nothing_old_after_stop, PROCS)
{
    unsigned seed = 4;
    atomic_bool end = false;
    pirn_wg wg = {0};
    pirn_ticker *t = pirn_ticker_new(1);
    pirn_wg_go(&wg, fire_for_others, &end);
    for (int i = 0; i < (TOOL ? 2000 : 20000); i++) {
        pirn_ticker_reset(t, 1 + (pirn_ns)(next_rand(&seed) % 3000));
        compute_until(pirn_now() + (pirn_ns)(next_rand(&seed) % 10000));
        if (i % 2) {
            pirn_ticker_stop(t);
            CHECK_EQ(try_get(t), 0);
        } else {
            pirn_ns start = pirn_now(), period = 1 + (pirn_ns)(next_rand(&seed) % 3000);
            pirn_ticker_reset(t, period);
            must_tick(t, start, period, 2);
        }
    }
    atomic_store(&end, true);
    pirn_wg_wait(&wg);
    pirn_ticker_free(t);
}

/* --- many ------------------------------------------------------------------------------------------------- */

static void get_ticks(pirn_ticker *t, int n)
{
    while (n-- > 0)
        pirn_chan_get(pirn_ticker_chan(t));
}

/* All that wait get their ticks in the end, and no tick goes to two. */
TEST_RUN_ATTR(many_wait_for_one, PROCS)
{
    for (int i = 0; i < 3; i++) {
        pirn_wg wg = {0};
        pirn_ns period = i == 0 ? 1 : i * 5 * PIRN_US, start = pirn_now();
        pirn_ticker *t = pirn_ticker_new(period);
        for (int k = 0; k < 16; k++)
            pirn_wg_go(&wg, get_ticks, t, 50);
        pirn_wg_wait(&wg);
        CHECK_GE(pirn_now() - start, 16 * 50 * period);
        pirn_ticker_free(t);
    }
}

static void make_tickers(unsigned seed)
{
    for (int i = 0; i < (TOOL ? 100 : 1000); i++) {
        pirn_ns period = 1 + (pirn_ns)(next_rand(&seed) % 20000);
        pirn_ticker *t = pirn_ticker_new(period);
        switch (next_rand(&seed) % 5) {
        case 0: pirn_chan_get(pirn_ticker_chan(t)); break;
        case 1: pirn_ticker_stop(t); break;
        case 2: pirn_ticker_reset(t, 1 + period / 2); break;
        case 3: compute_until(pirn_now() + 2 * period); break;
        default: pirn_yield();
        }
        pirn_ticker_free(t);
    }
}

TEST_RUN_ATTR(stress, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    for (unsigned i = 0; i < 16; i++)
        pirn_wg_go(&wg, make_tickers, i);
    pirn_wg_wait(&wg);
}

static void reset_often(pirn_ticker *t, unsigned seed, pirn_wg *last)
{
    for (int i = 0; i < (TOOL ? 500 : 5000); i++) {
        if (next_rand(&seed) % 4 == 0) {
            pirn_ticker_stop(t);
        } else {
            pirn_ticker_reset(t, 1 + (pirn_ns)(next_rand(&seed) % 5000));
        }
        if (next_rand(&seed) % 2)
            pirn_yield();
    }
    pirn_wg_done(last);
}

/* Several set and stop one ticker, others receive: in the end it ticks for all of them. */
TEST_RUN_ATTR(concurrent_stress, PROCS, .timeout = 60)
{
    for (int round = 0; round < 5; round++) {
        pirn_wg getters = {0}, setters = {0};
        pirn_ticker *t = pirn_ticker_new(PIRN_US);
        for (int i = 0; i < 8; i++)
            pirn_wg_go(&getters, get_ticks, t, 500);
        pirn_wg_add(&setters, 4);
        for (unsigned i = 0; i < 4; i++)
            pirn_go(reset_often, t, i, &setters);
        pirn_wg_wait(&setters);
        pirn_ticker_reset(t, PIRN_US);
        pirn_wg_wait(&getters);
        pirn_ticker_free(t);
    }
}

/* --- life ---------------------------------------------------------------------------------------------------- */

static pirn_ticker *kept;

static int tick_and_leave(void *arg)
{
    (void)arg;
    if (!kept)
        kept = pirn_ticker_new(1);
    else
        pirn_ticker_reset(kept, 1);
    get_ticks(kept, 3);
    pirn_sleep(10 * PIRN_US);
    return 0;
}

TEST_ATTR(outlives_the_runtime, PROCS)
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pirn_run(tick_and_leave, NULL), 0);
        CHECK_LE(try_get(kept), 1); /* sent before the end */
        CHECK_EQ(try_get(kept), 0); /* and nobody sends any more */
        if (i % 2)
            pirn_ticker_stop(kept);
        if (i % 3 == 0) {
            pirn_ticker_free(kept);
            kept = NULL;
        }
    }
    pirn_ticker_free(kept);
}
