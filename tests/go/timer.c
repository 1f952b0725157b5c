/* SPDX-License-Identifier: MIT */
/*
 * Timers with a channel, as Go's tests want them, since 1.23: the channel looks unbuffered, and once a
 * stop or reset has returned nothing old is received. So there is a ledger: each setting of a timer is
 * either received, or taken back by a stop or reset that returns true; never both, never neither.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "timers.h"

static int try_get(pirn_timer *t)
{
    return pirn_chan_try_recv(pirn_timer_chan(t), NULL);
}

/* --- what stop and reset say ----------------------------------------------------------------------- */

TEST_RUN_ATTR(stop_says_whether_it_was_to_come, PROCS)
{
    pirn_timer *t = pirn_timer_new(HOUR);
    CHECK(pirn_timer_stop(t));
    CHECK(!pirn_timer_stop(t));
    CHECK(!pirn_timer_stop_wait(t));
    CHECK_EQ(try_get(t), 0);
    CHECK(!pirn_timer_reset(t, 1)); /* set again, and received */
    pirn_chan_get(pirn_timer_chan(t));
    CHECK(!pirn_timer_stop(t));
    CHECK(!pirn_timer_reset(t, 1)); /* set again, due, and not received: still to come */
    pirn_sleep(PIRN_MS);
    CHECK(pirn_timer_stop(t));
    CHECK(!pirn_timer_stop(t));
    CHECK_EQ(try_get(t), 0);
    pirn_timer_free(t);
}

TEST_RUN_ATTR(reset_says_whether_it_was_to_come, PROCS)
{
    pirn_timer *t = pirn_timer_new(HOUR);
    CHECK(pirn_timer_reset(t, HOUR));
    CHECK(pirn_timer_reset(t, 2 * HOUR));
    pirn_ns start = pirn_now(), v;
    CHECK(pirn_timer_reset(t, PIRN_MS));
    CHECK(pirn_chan_recv(pirn_timer_chan(t), &v));
    CHECK_GE(v - start, PIRN_MS);
    CHECK(!pirn_timer_reset(t, 1));
    pirn_sleep(PIRN_MS);
    CHECK(pirn_timer_reset(t, HOUR)); /* due, not received */
    CHECK_EQ(try_get(t), 0);
    CHECK(pirn_timer_reset(t, PIRN_NEVER));
    CHECK(!pirn_timer_reset(t, 0));
    pirn_chan_get(pirn_timer_chan(t));
    CHECK_EQ(try_get(t), 0);
    pirn_timer_free(t);
}

/* --- the channel looks unbuffered ---------------------------------------------------------------------- */

static void must_look_empty(pirn_timer *t)
{
    CHECK_EQ(pirn_chan_len(pirn_timer_chan(t)), 0);
    CHECK_EQ(pirn_chan_cap(pirn_timer_chan(t)), 0);
}

TEST_RUN_ATTR(looks_unbuffered, PROCS)
{
    pirn_timer *t = pirn_timer_new(HOUR);
    must_look_empty(t);
    pirn_timer_reset(t, 1);
    must_look_empty(t);
    pirn_sleep(PIRN_MS);
    must_look_empty(t);
    pirn_chan_get(pirn_timer_chan(t));
    must_look_empty(t);
    pirn_timer_reset(t, 1);
    pirn_sleep(PIRN_MS);
    CHECK(pirn_timer_stop(t));
    must_look_empty(t);
    CHECK_EQ(try_get(t), 0);
    pirn_timer_free(t);
}

/* Due, sent, or on its way: nothing of it is received after the stop, or the reset. */
TEST_RUN_ATTR(nothing_old_after_stop, PROCS)
{
    unsigned seed = 1;
    pirn_timer *t = pirn_timer_new(HOUR);
    for (int i = 0; i < (TOOL ? 2000 : 20000); i++) {
        pirn_ns near = next_rand(&seed) % 20 * PIRN_US;
        pirn_timer_reset(t, near);
        compute_until(pirn_now() + (pirn_ns)(next_rand(&seed) % 22) * PIRN_US);
        CHECK(i % 2 ? pirn_timer_stop(t) : pirn_timer_reset(t, HOUR));
        CHECK_EQ(try_get(t), 0);
        CHECK_EQ(pirn_select(PIRN_RECV(pirn_timer_chan(t), NULL), PIRN_DEFAULT), 1);
        CHECK_EQ(pirn_timer_stop(t), i % 2 == 0);
        CHECK(!pirn_timer_stop(t));
    }
    pirn_timer_free(t);
}

static void fire_for_others(atomic_bool *end)
{
    while (!atomic_load(end))
        pirn_yield();
}

/* The same while others get to the timer, who have nothing to do but that. */
TEST_RUN_ATTR(second_stop_says_no, PROCS)
{
    unsigned seed = 2;
    atomic_bool end = false;
    pirn_wg wg = {0};
    pirn_timer *t = pirn_timer_new(HOUR);
    CHECK(pirn_timer_stop(t));
    for (int i = 0; i < 3; i++)
        pirn_wg_go(&wg, fire_for_others, &end);
    for (int i = 0; i < (TOOL ? 5000 : 100000); i++) {
        pirn_ns near = next_rand(&seed) % 3000;
        CHECK(!pirn_timer_reset(t, near));
        compute_until(pirn_now() + (pirn_ns)(next_rand(&seed) % 4000));
        CHECK(pirn_timer_stop(t)); /* nobody receives */
        CHECK(!pirn_timer_stop(t));
    }
    atomic_store(&end, true);
    pirn_wg_wait(&wg);
    pirn_timer_free(t);
}

/* A value that is received belongs to the last setting: it is not earlier than that allows. */
TEST_RUN_ATTR(reset_drops_the_old, PROCS)
{
    unsigned seed = 3;
    atomic_bool end = false;
    pirn_wg wg = {0};
    pirn_timer *t = pirn_timer_new(0);
    pirn_wg_go(&wg, fire_for_others, &end);
    for (int i = 0; i < (TOOL ? 1000 : 10000); i++) {
        pirn_ns v = 0, ns = 0, set = 0;
        for (unsigned k = 0; k <= next_rand(&seed) % 4; k++) {
            compute_until(pirn_now() + (pirn_ns)(next_rand(&seed) % 10000));
            ns = next_rand(&seed) % 10000;
            set = pirn_now();
            pirn_timer_reset(t, ns);
        }
        CHECK(pirn_chan_recv(pirn_timer_chan(t), &v));
        CHECK_GE(v - set, ns);
        CHECK_EQ(try_get(t), 0); /* and there is but one */
    }
    atomic_store(&end, true);
    pirn_wg_wait(&wg);
    pirn_timer_free(t);
}

/* --- near and far ---------------------------------------------------------------------------------------- */

TEST_RUN_ATTR(near_and_far, PROCS)
{
    for (int i = 0; i < 50; i++) {
        pirn_timer *t = pirn_timer_new(i % 2 ? HOUR : PIRN_MS);
        pirn_timer *below = pirn_timer_new(2 * HOUR), *above = pirn_timer_new(PIRN_NEVER - 1);
        pirn_timer_reset(t, HOUR);
        pirn_timer_reset(t, 100 * PIRN_MS);
        pirn_timer_reset(t, HOUR);
        CHECK_EQ(pirn_select(PIRN_RECV(pirn_timer_chan(t), NULL), PIRN_AFTER(PIRN_MS)), 1);
        pirn_ns start = pirn_now();
        CHECK(pirn_timer_reset(t, PIRN_MS));
        CHECK_GE(pirn_chan_get(pirn_timer_chan(t)) - start, PIRN_MS);
        CHECK_EQ(try_get(below), 0);
        CHECK_EQ(try_get(above), 0);
        pirn_timer_free(below);
        pirn_timer_free(above);
        pirn_timer_free(t);
    }
}

static void recv_until_closed(pirn_timer *t, pirn_chan(int) end, atomic_int *got, atomic_int *ready)
{
    atomic_fetch_add(ready, 1);
    while (pirn_select(PIRN_RECV(pirn_timer_chan(t), NULL), PIRN_RECV(end, NULL)) == 0)
        atomic_fetch_add(got, 1);
}

/* Those who wait stay when it is stopped or set, and each setting wakes one of them. */
TEST_RUN_ATTR(each_setting_wakes_one, PROCS)
{
    enum { WAITERS = 8 };
    atomic_int got = 0, ready = 0;
    pirn_wg wg = {0};
    pirn_chan(int) end = pirn_chan_make(int, 0);
    pirn_timer *t = pirn_timer_new(HOUR);
    for (int i = 0; i < WAITERS; i++)
        pirn_wg_go(&wg, recv_until_closed, t, end, &got, &ready);
    while (atomic_load(&ready) < WAITERS)
        pirn_yield();
    for (int i = 1; i <= 100; i++) {
        pirn_timer_stop(t);
        pirn_timer_reset(t, HOUR);
        CHECK(pirn_timer_reset(t, i % 3 * 50 * PIRN_US));
        while (atomic_load(&got) < i)
            pirn_yield();
        CHECK(!pirn_timer_stop(t));
    }
    pirn_sleep(PIRN_MS);
    CHECK_EQ(atomic_load(&got), 100);
    pirn_chan_close(end);
    pirn_wg_wait(&wg);
    pirn_chan_release(end);
    pirn_timer_free(t);
}

static void recv_one(pirn_chan(pirn_ns) c, atomic_int *values, atomic_int *closed)
{
    pirn_ns v = 1;
    if (pirn_chan_recv(c, &v)) {
        CHECK_GT(v, 0);
        atomic_fetch_add(values, 1);
    } else {
        CHECK_EQ(v, 0);
        atomic_fetch_add(closed, 1);
    }
}

/* A close wakes all the others; and the timer does not mind a channel that is closed. */
static void one_value_then_closed(pirn_chan(pirn_ns) c)
{
    atomic_int values = 0, closed = 0;
    pirn_wg wg = {0};
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, recv_one, c, &values, &closed);
    while (atomic_load(&values) < 1)
        pirn_yield();
    pirn_chan_close(c);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&values), 1);
    CHECK_EQ(atomic_load(&closed), 9);
}

TEST_RUN_ATTR(one_gets_it_close_wakes_all, PROCS)
{
    for (int i = 0; i < 20; i++) {
        pirn_chan(pirn_ns) c = pirn_after(i % 2 * PIRN_MS);
        one_value_then_closed(c);
        pirn_chan_release(c);
        pirn_timer *t = pirn_timer_new(i % 2 * PIRN_MS);
        one_value_then_closed(pirn_timer_chan(t));
        pirn_timer_reset(t, 0);
        pirn_sleep(10 * PIRN_US);
        CHECK_EQ(try_get(t), -1);
        pirn_timer_free(t);
    }
}

/* --- the ledger --------------------------------------------------------------------------------------------- */

struct ledger {
    pirn_timer *t;
    atomic_int set, taken_back, received;
    atomic_bool end;
};

static void set_and_stop(struct ledger *l, unsigned seed, int n)
{
    for (int i = 0; i < n; i++) {
        bool was;
        unsigned what = next_rand(&seed) % 8;
        if (what < 5) {
            was = pirn_timer_reset(l->t, what == 0 ? HOUR : (pirn_ns)(next_rand(&seed) % 5000));
            atomic_fetch_add(&l->set, 1);
        } else {
            was = pirn_timer_stop(l->t);
        }
        atomic_fetch_add(&l->taken_back, was);
        if (what & 1) {
            compute_until(pirn_now() + (pirn_ns)(next_rand(&seed) % 4000));
        } else {
            pirn_yield();
        }
    }
}

static void receive_some(struct ledger *l, int how)
{
    while (!atomic_load(&l->end)) {
        pirn_ns v;
        bool got;
        switch (how % 3) {
        case 0: got = pirn_chan_try_recv(pirn_timer_chan(l->t), &v) == 1; break;
        case 1:
            got = pirn_chan_recv_until(pirn_timer_chan(l->t), &v, pirn_now() + 20 * PIRN_US) == 0;
            break;
        default:
            got = pirn_select(PIRN_RECV(pirn_timer_chan(l->t), &v), PIRN_AFTER(10 * PIRN_US)) == 0;
        }
        atomic_fetch_add(&l->received, got);
        pirn_yield();
    }
}

static void *set_from_thread(void *arg)
{
    set_and_stop(arg, 77, TOOL ? 500 : 2000);
    return NULL;
}

static void keep_ledger(int setters, int receivers, bool thread)
{
    pthread_t foreign;
    pirn_wg wg = {0}, getters = {0};
    struct ledger l = {.t = pirn_timer_new(HOUR)};
    CHECK(pirn_timer_stop(l.t));
    for (int i = 0; i < receivers; i++)
        pirn_wg_go(&getters, receive_some, &l, i);
    for (int i = 0; i < setters; i++)
        pirn_wg_go(&wg, set_and_stop, &l, (unsigned)i, TOOL ? 500 : 2000);
    if (thread)
        CHECK_EQ(pthread_create(&foreign, NULL, set_from_thread, &l), 0);
    pirn_wg_wait(&wg);
    if (thread)
        CHECK_EQ(pthread_join(foreign, NULL), 0);
    atomic_fetch_add(&l.taken_back, pirn_timer_stop(l.t));
    CHECK(!pirn_timer_stop(l.t));
    atomic_store(&l.end, true);
    pirn_wg_wait(&getters);
    CHECK_EQ(atomic_load(&l.set), atomic_load(&l.taken_back) + atomic_load(&l.received));
    pirn_timer_free(l.t);
}

TEST_RUN_ATTR(stop_stress, PROCS, .timeout = 60)
{
    for (int i = 0; i < (TEST_TSAN || TEST_ASAN ? 2 : 5); i++) {
        keep_ledger(1, 1, false);
        keep_ledger(1, 3, false);
        keep_ledger(4, 0, false);
        keep_ledger(4, 4, true);
    }
}

/* Many timers, each kept by one goroutine: heaps are stirred from all sides. */
#define OWNED 50

static void stir(unsigned seed, atomic_int *received)
{
    pirn_timer *timers[OWNED];
    pirn_ns due[OWNED]; /* -1: not set */
    int got = 0, set = OWNED, taken_back = 0;
    for (int i = 0; i < OWNED; i++) {
        due[i] = pirn_now() + HOUR;
        timers[i] = pirn_timer_new(HOUR);
    }
    for (int round = 0; round < (TOOL ? 2000 : 10000); round++) {
        unsigned i = next_rand(&seed) % OWNED;
        pirn_ns v,
            ns = (pirn_ns)(next_rand(&seed) % 100) * (next_rand(&seed) % 3 ? PIRN_US : PIRN_SEC);
        switch (next_rand(&seed) % 4) {
        case 0:
            CHECK_EQ(pirn_timer_stop(timers[i]), due[i] >= 0);
            taken_back += due[i] >= 0;
            due[i] = -1;
            break;
        case 1:
        case 2:
            v = pirn_now() + ns;
            CHECK_EQ(pirn_timer_reset(timers[i], ns), due[i] >= 0);
            taken_back += due[i] >= 0;
            due[i] = v;
            set++;
            break;
        default:
            if (pirn_chan_try_recv(pirn_timer_chan(timers[i]), &v)) {
                CHECK_GE(due[i], 0);
                CHECK_GE(v, due[i]);
                due[i] = -1;
                got++;
            }
        }
        if (round % 64 == 0)
            pirn_yield();
    }
    for (int i = 0; i < OWNED; i++) {
        CHECK_EQ(pirn_timer_stop(timers[i]), due[i] >= 0);
        taken_back += due[i] >= 0;
        pirn_timer_free(timers[i]);
    }
    CHECK_EQ(set, got + taken_back);
    atomic_fetch_add(received, got);
}

TEST_RUN_ATTR(heaps_are_stirred, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    atomic_int received = 0;
    for (unsigned i = 0; i < 16; i++)
        pirn_wg_go(&wg, stir, i, &received);
    pirn_wg_wait(&wg);
    CHECK_GT(atomic_load(&received), 0);
}

/* --- life ----------------------------------------------------------------------------------------------------- */

/* The channel lives as long as somebody has it; the timer that was freed sends nothing to it. */
TEST_RUN_ATTR(the_channel_outlives_its_timer, PROCS)
{
    for (int i = 0; i < 200; i++) {
        pirn_timer *t = pirn_timer_new(i % 4 * 10 * PIRN_US);
        pirn_chan(pirn_ns) c = pirn_chan_retain(pirn_timer_chan(t));
        compute_until(pirn_now() + i % 3 * 15 * PIRN_US);
        pirn_timer_free(t);
        CHECK_EQ(pirn_chan_try_recv(c, NULL), 0);
        CHECK_EQ(pirn_select(PIRN_RECV(c, NULL), PIRN_AFTER(20 * PIRN_US)), 1);
        pirn_chan_release(c);
    }
}

static void make_and_free(unsigned seed)
{
    for (int i = 0; i < (TOOL ? 500 : 2000); i++) {
        pirn_ns ns = next_rand(&seed) % 5000;
        pirn_chan(pirn_ns) c = pirn_after(ns);
        if (i % 2)
            compute_until(pirn_now() + (pirn_ns)(next_rand(&seed) % 5000));
        if (i % 5 == 0)
            pirn_select(PIRN_RECV(c, NULL), PIRN_AFTER((pirn_ns)(next_rand(&seed) % 5000)));
        pirn_chan_release(c);
    }
}

/* Released while it fires. */
TEST_RUN_ATTR(released_while_it_fires, PROCS)
{
    pirn_wg wg = {0};
    for (unsigned i = 0; i < 8; i++)
        pirn_wg_go(&wg, make_and_free, i);
    pirn_wg_wait(&wg);
}

#define KEPT 6
static pirn_timer *kept[KEPT];
static pirn_chan(pirn_ns) kept_after;

static int set_and_leave(void *arg)
{
    (void)arg;
    for (int i = 0; i < KEPT; i++) {
        if (!kept[i])
            kept[i] = pirn_timer_new(HOUR);
        CHECK_EQ(try_get(kept[i]), 0);
        /* The end of a runtime is no stop: what had been sent is received; but nothing is pending. */
        pirn_timer_reset(kept[i], i % 2 ? HOUR : 1);
        CHECK(pirn_timer_stop(kept[i]));
        CHECK(!pirn_timer_reset(kept[i], i % 3 ? HOUR : 50 * PIRN_US));
    }
    if (!kept_after)
        kept_after = pirn_after(HOUR);
    pirn_sleep(10 * PIRN_US);
    return 0;
}

static int use_again(void *arg)
{
    (void)arg;
    for (int i = 0; i < KEPT; i++) {
        CHECK(!pirn_timer_stop(kept[i]));
        pirn_ns start = pirn_now();
        CHECK(!pirn_timer_reset(kept[i], i * 10 * PIRN_US));
        CHECK_GE(pirn_chan_get(pirn_timer_chan(kept[i])) - start, i * 10 * PIRN_US);
        CHECK(!pirn_timer_reset(kept[i], HOUR));
    }
    CHECK_EQ(pirn_chan_try_recv(kept_after, NULL), 0);
    return 0;
}

/* Timers that are pending at the end of a runtime are not pending in the next; they can be set again,
 * and freed without one. */
TEST_ATTR(outlives_the_runtime, PROCS)
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pirn_run(set_and_leave, NULL), 0);
        for (int k = 0; k < KEPT; k++) {
            pirn_timer_stop(kept[k]); /* true, if it was sent before the end */
            CHECK(!pirn_timer_stop_wait(kept[k]));
            CHECK_EQ(try_get(kept[k]), 0);
        }
        CHECK_EQ(pirn_chan_try_recv(kept_after, NULL), 0);
        CHECK_EQ(pirn_run(use_again, NULL), 0);
    }
    for (int k = 0; k < KEPT; k++)
        pirn_timer_free(kept[k]);
    pirn_chan_release(kept_after);
}
