/* SPDX-License-Identifier: MIT */
/* Contexts, as Go's tests want them: the section "Context" of the conformance list. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"

static void settle(void)
{
    for (int i = 0; i < 20; i++)
        pirn_yield();
}

static void until_is(atomic_int *n, int wanted)
{
    while (atomic_load(n) < wanted)
        pirn_yield();
}

static bool is_done(pirn_ctx *ctx)
{
    return pirn_chan_try_recv(pirn_ctx_done(ctx), NULL) == -1;
}

static void check_alive(pirn_ctx *ctx)
{
    CHECK_EQ(pirn_ctx_err(ctx), 0);
    CHECK_EQ(pirn_ctx_cause(ctx), 0);
    CHECK(!is_done(ctx));
}

static void check_cancelled(pirn_ctx *ctx, int err, int cause)
{
    CHECK_EQ(pirn_ctx_err(ctx), err);
    CHECK_EQ(pirn_ctx_cause(ctx), cause);
    CHECK(is_done(ctx));
}

static void wait_done(pirn_ctx *ctx)
{
    CHECK(!pirn_chan_recv(pirn_ctx_done(ctx), NULL));
}

/* --- the tree ---------------------------------------------------------------------------------------------- */

TEST_RUN_ATTR(background, PROCS)
{
    pirn_ctx *bg = pirn_ctx_background();
    CHECK_EQ(pirn_ctx_err(bg), 0);
    CHECK_EQ(pirn_ctx_cause(bg), 0);
    CHECK_EQ(pirn_ctx_deadline(bg), PIRN_NEVER);
    CHECK(!pirn_ctx_donev(bg));
    CHECK(!pirn_ctx_value(bg, &bg));
    CHECK_EQ((uintptr_t)pirn_ctx_retain(bg), (uintptr_t)bg);
    pirn_ctx_release(bg);
    pirn_ctx_release(NULL);
    CHECK_EQ((uintptr_t)pirn_ctx_current(), (uintptr_t)bg);
}

/* root - a - b - c, and d beside b. */
TEST_RUN_ATTR(cancel_goes_down_not_up, PROCS)
{
    pirn_ctx *root = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx *a = pirn_ctx_with_cancel(root), *b = pirn_ctx_with_cancel(a);
    pirn_ctx *c = pirn_ctx_with_value(b, root, a), *d = pirn_ctx_with_cancel(a);
    pirn_ctx_cancel(b, 0);
    check_cancelled(b, -ECANCELED, -ECANCELED);
    check_cancelled(c, -ECANCELED, -ECANCELED);
    check_alive(root);
    check_alive(a);
    check_alive(d);
    pirn_ctx_cancel(root, 0);
    check_cancelled(root, -ECANCELED, -ECANCELED);
    check_cancelled(a, -ECANCELED, -ECANCELED);
    check_cancelled(d, -ECANCELED, -ECANCELED);
    pirn_ctx_release(root); /* in an order that no tree would like */
    pirn_ctx_release(b);
    pirn_ctx_release(d);
    pirn_ctx_release(a);
    CHECK_EQ(pirn_ctx_err(c), -ECANCELED);
    CHECK_EQ((uintptr_t)pirn_ctx_value(c, root), (uintptr_t)a);
    pirn_ctx_release(c);
}

TEST_RUN_ATTR(parent_cancelled_before_the_child_is_made, PROCS)
{
    pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx_cancel(parent, -EIO);
    pirn_ctx *child = pirn_ctx_with_cancel(parent),
             *value = pirn_ctx_with_value(child, parent, parent);
    pirn_ctx *timed = pirn_ctx_with_timeout(parent, PIRN_SEC);
    pirn_ctx *past = pirn_ctx_with_timeout(parent, -1);
    check_cancelled(child, -ECANCELED, -EIO);
    check_cancelled(value, -ECANCELED, -EIO);
    check_cancelled(timed, -ECANCELED, -EIO);
    check_cancelled(past, -ECANCELED, -EIO);
    pirn_ctx_release(parent);
    pirn_ctx_release(timed);
    pirn_ctx_release(past);
    pirn_ctx_release(value);
    pirn_ctx_release(child);
}

/* A parent that lives long has a child for each request. */
TEST_RUN_ATTR(children_are_removed, PROCS)
{
    pirn_ctx *parent = pirn_ctx_with_timeout(pirn_ctx_background(), 3600 * PIRN_SEC);
    size_t before = 0;
    for (int i = 0; i < (TEST_TSAN ? 20000 : 100000); i++) {
        pirn_ctx *child = i % 3 == 0   ? pirn_ctx_with_cancel(parent)
                          : i % 3 == 1 ? pirn_ctx_with_timeout(parent, 60 * PIRN_SEC)
                                       : pirn_ctx_with_value(parent, parent, parent);
        if (i % 2)
            pirn_ctx_cancel(child, 0);
        pirn_ctx_release(child);
        if (i == 1000)
            before = test_allocated();
    }
    size_t after = test_allocated();
    CHECK_LT((long)(after - before), 1 << 20);
    check_alive(parent);
    pirn_ctx_cancel(parent, 0); /* nothing is left below it */
    pirn_ctx_release(parent);
}

TEST_RUN_ATTR(deep_chain, PROCS)
{
    enum { N = 10000 };
    pirn_ctx **chain = calloc(N, sizeof(pirn_ctx *));
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < N; i++)
            chain[i] = pirn_ctx_with_cancel(i ? chain[i - 1] : pirn_ctx_background());
        for (int i = 0; turn >= 2 && i < N - 1; i++) /* each holds the one above it */
            pirn_ctx_release(chain[i]);
        if (turn % 2)
            pirn_ctx_cancel(chain[turn < 2 ? 0 : N - 1], -EIO);
        CHECK_EQ(pirn_ctx_err(chain[N - 1]), turn == 0 ? 0 : -ECANCELED);
        for (int i = 0; turn < 2 && i < N - 1; i++)
            pirn_ctx_release(chain[i]);
        CHECK_EQ(pirn_ctx_cause(chain[N - 1]), turn == 1 ? -EIO : -ECANCELED);
        pirn_ctx_release(chain[N - 1]); /* and now all of them go */
    }
    free(chain);
}

static void wait_for_ctx(pirn_ctx *ctx, atomic_int *n)
{
    wait_done(ctx);
    CHECK_EQ(pirn_ctx_err(ctx), -ECANCELED);
    atomic_fetch_add(n, 1);
    pirn_ctx_release(ctx);
}

TEST_RUN_ATTR(wide_tree, PROCS)
{
    enum { WIDE = TEST_TSAN ? 12 : 30 };
    atomic_int n = 0;
    pirn_wg wg = {0};
    pirn_ctx *root = pirn_ctx_with_cancel(pirn_ctx_background());
    for (int i = 0; i < WIDE; i++) {
        pirn_ctx *branch = pirn_ctx_with_cancel(root);
        for (int k = 0; k < WIDE; k++) {
            pirn_ctx *leaf = pirn_ctx_with_cancel(branch);
            pirn_wg_go(&wg, wait_for_ctx, leaf, &n); /* takes over the handle */
        }
        pirn_wg_go(&wg, wait_for_ctx, branch, &n);
    }
    settle();
    CHECK_EQ(atomic_load(&n), 0);
    pirn_ctx_cancel(root, 0);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&n), WIDE * (WIDE + 1));
    pirn_ctx_release(root);
}

/* --- causes ------------------------------------------------------------------------------------------------ */

TEST_RUN_ATTR(first_cause_sticks, PROCS)
{
    pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx *own = pirn_ctx_with_cancel(parent), *heir = pirn_ctx_with_cancel(parent);
    pirn_ctx *timed = pirn_ctx_with_timeout(parent, -1), *below = pirn_ctx_with_cancel(timed);
    pirn_ctx_cancel(own, -ENOENT);
    pirn_ctx_cancel(own, -EIO);
    pirn_ctx_cancel(parent, -EPIPE);
    pirn_ctx_cancel(parent, 0);
    check_cancelled(own, -ECANCELED, -ENOENT);
    check_cancelled(parent, -ECANCELED, -EPIPE);
    check_cancelled(heir, -ECANCELED, -EPIPE);
    check_cancelled(timed, -ETIMEDOUT, -ETIMEDOUT);
    check_cancelled(below, -ETIMEDOUT, -ETIMEDOUT);
    pirn_ctx_release(below);
    pirn_ctx_release(timed);
    pirn_ctx_release(heir);
    pirn_ctx_release(own);
    pirn_ctx_release(parent);
}

static void race_to_cancel(pirn_ctx *ctx, int cause, atomic_int *ready)
{
    atomic_fetch_add(ready, 1);
    until_is(ready, 4);
    pirn_ctx_cancel(ctx, cause);
    int seen = pirn_ctx_cause(ctx);
    CHECK_LE(seen, -1);
    CHECK_LE(-4, seen);
    settle();
    CHECK_EQ(pirn_ctx_cause(ctx), seen); /* whoever it was: for good */
}

TEST_RUN_ATTR(race_of_causes, PROCS)
{
    for (int i = 0; i < 200; i++) {
        atomic_int ready = 0;
        pirn_wg wg = {0};
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_ctx *child = pirn_ctx_with_cancel(ctx);
        for (int k = 1; k <= 4; k++)
            pirn_wg_go(&wg, race_to_cancel, ctx, -k, &ready);
        pirn_wg_wait(&wg);
        CHECK_EQ(pirn_ctx_cause(child), pirn_ctx_cause(ctx));
        pirn_ctx_release(child);
        pirn_ctx_release(ctx);
    }
}

/* --- parents that are cancelled while children are made ------------------------------------------------------ */

static void make_children(pirn_ctx *parent, atomic_int *ready)
{
    enum { N = 8 };
    pirn_ctx *child[N];
    atomic_fetch_add(ready, 1);
    for (int i = 0; i < N; i++) {
        child[i] =
            i % 2 ? pirn_ctx_with_cancel(parent) : pirn_ctx_with_timeout(parent, 3600 * PIRN_SEC);
        if (i % 3 == 0)
            pirn_yield();
    }
    for (int i = 0; i < N; i++) {
        wait_done(child[i]);
        check_cancelled(child[i], -ECANCELED, -EIO);
        pirn_ctx_release(child[i]);
    }
    pirn_ctx_release(parent);
}

TEST_RUN_ATTR(cancelled_while_children_are_made, PROCS)
{
    for (int i = 0; i < (TEST_TSAN ? 40 : 500); i++) {
        atomic_int ready = 0;
        pirn_wg wg = {0};
        pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
        for (int k = 0; k < 4; k++)
            pirn_wg_go(&wg, make_children, pirn_ctx_retain(parent), &ready);
        until_is(&ready, i % 5);
        pirn_ctx_cancel(parent, -EIO);
        pirn_ctx_release(parent);
        pirn_wg_wait(&wg);
    }
}

static void cancel_both_ways(pirn_ctx *ctx, atomic_int *ready)
{
    atomic_fetch_add(ready, 1);
    until_is(ready, 2);
    pirn_ctx_cancel(ctx, 0);
    pirn_ctx_release(ctx);
}

TEST_RUN_ATTR(parent_and_child_cancelled_at_once, PROCS)
{
    for (int i = 0; i < (TEST_TSAN ? 60 : 1000); i++) {
        atomic_int ready = 0;
        pirn_wg wg = {0};
        pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_ctx *child = pirn_ctx_with_timeout(parent, PIRN_SEC * 3600);
        pirn_ctx *below = pirn_ctx_with_cancel(child);
        pirn_wg_go(&wg, cancel_both_ways, parent, &ready);
        pirn_wg_go(&wg, cancel_both_ways, child, &ready);
        wait_done(below);
        pirn_ctx_release(below);
        pirn_wg_wait(&wg);
    }
}

/* --- deadlines --------------------------------------------------------------------------------------------- */

TEST_RUN_ATTR(earliest_deadline_wins, PROCS)
{
    pirn_ns far = pirn_deadline(3600 * PIRN_SEC), near = pirn_deadline(3 * PIRN_MS);
    pirn_ctx *a = pirn_ctx_with_deadline(pirn_ctx_background(), far);
    pirn_ctx *b = pirn_ctx_with_deadline(a, near), *c = pirn_ctx_with_deadline(b, far);
    pirn_ctx *d = pirn_ctx_with_cancel(c), *e = pirn_ctx_with_deadline(d, PIRN_NEVER);
    CHECK_EQ(pirn_ctx_deadline(a), far);
    CHECK_EQ(pirn_ctx_deadline(b), near);
    CHECK_EQ(pirn_ctx_deadline(c), near);
    CHECK_EQ(pirn_ctx_deadline(d), near);
    CHECK_EQ(pirn_ctx_deadline(e), near);
    wait_done(e);
    CHECK_LE(near, pirn_now()); /* never early */
    check_cancelled(e, -ETIMEDOUT, -ETIMEDOUT);
    check_cancelled(d, -ETIMEDOUT, -ETIMEDOUT);
    check_cancelled(c, -ETIMEDOUT, -ETIMEDOUT);
    check_cancelled(b, -ETIMEDOUT, -ETIMEDOUT);
    check_alive(a);
    pirn_ctx_cancel(b, -EIO); /* too late to matter */
    check_cancelled(b, -ETIMEDOUT, -ETIMEDOUT);
    pirn_ctx_release(e);
    pirn_ctx_release(d);
    pirn_ctx_release(c);
    pirn_ctx_release(b);
    pirn_ctx_release(a);
}

TEST_RUN_ATTR(a_past_deadline_is_cancelled_at_once, PROCS)
{
    pirn_ns past[] = {INT64_MIN, -1, 0, 1, pirn_now()};
    for (unsigned i = 0; i < sizeof past / sizeof *past; i++) {
        pirn_ctx *ctx = pirn_ctx_with_deadline(pirn_ctx_background(), past[i]);
        CHECK(is_done(ctx)); /* before anybody has asked for its error */
        check_cancelled(ctx, -ETIMEDOUT, -ETIMEDOUT);
        CHECK_EQ(pirn_ctx_deadline(ctx), past[i]);
        pirn_ctx_release(ctx);
    }
    pirn_ctx *zero = pirn_ctx_with_timeout(pirn_ctx_background(), 0);
    check_cancelled(zero, -ETIMEDOUT, -ETIMEDOUT);
    pirn_ctx_release(zero);
    pirn_ctx *never = pirn_ctx_with_timeout(pirn_ctx_background(), INT64_MAX - 1);
    CHECK_EQ(pirn_ctx_deadline(never), PIRN_NEVER);
    check_alive(never);
    pirn_ctx_release(never);
}

TEST_RUN_ATTR(cancel_stops_the_timer, PROCS)
{
    for (int i = 0; i < 100; i++) {
        pirn_ns soon = pirn_deadline(PIRN_MS);
        pirn_ctx *ctx = pirn_ctx_with_deadline(pirn_ctx_background(), soon);
        pirn_ctx_cancel(ctx, 0);
        int err = pirn_ctx_err(ctx);
        if (i % 10 == 0)
            pirn_sleep_until(soon + PIRN_MS);
        CHECK_EQ(pirn_ctx_err(ctx), err); /* -ETIMEDOUT only if this thread was slow */
        if (pirn_now() < soon)
            CHECK_EQ(err, -ECANCELED);
        pirn_ctx_release(ctx); /* the memory goes, and the timer must have gone */
    }
    pirn_sleep(3 * PIRN_MS);
}

static void keep_busy(atomic_int *busy, atomic_int *stop)
{
    atomic_fetch_add(busy, 1);
    while (!atomic_load(stop))
        ;
}

/* Nobody has a P to look at timers. */
TEST_RUN_ATTR(err_sees_a_deadline_though_all_are_busy, PROCS)
{
    atomic_int busy = 0, stop = 0;
    pirn_wg wg = {0};
    int n = pirn_procs(0);
    for (int i = 1; i < n; i++)
        pirn_wg_go(&wg, keep_busy, &busy, &stop);
    until_is(&busy, n - 1);
    pirn_ns deadline = pirn_deadline(2 * PIRN_MS);
    pirn_ctx *ctx = pirn_ctx_with_deadline(pirn_ctx_background(), deadline);
    pirn_ctx *child = pirn_ctx_with_cancel(ctx);
    while (pirn_now() < deadline)
        ;
    CHECK_EQ(pirn_ctx_err(child), -ETIMEDOUT);
    CHECK_EQ(pirn_ctx_cause(ctx), -ETIMEDOUT);
    check_cancelled(ctx, -ETIMEDOUT, -ETIMEDOUT);
    check_cancelled(child, -ETIMEDOUT, -ETIMEDOUT);
    atomic_store(&stop, 1);
    pirn_wg_wait(&wg);
    pirn_ctx_release(child);
    pirn_ctx_release(ctx);
}

/* Contexts come and go while their timers fire. */
static void tiny_deadlines(unsigned seed)
{
    for (int i = 0; i < (TEST_TSAN ? 25 : 300); i++) {
        seed = seed * 1664525 + 1013904223;
        pirn_ctx *a = pirn_ctx_with_timeout(pirn_ctx_background(), seed >> 16 & 0xffff);
        pirn_ctx *b = pirn_ctx_with_timeout(a, seed >> 12 & 0xffff);
        if (seed >> 30 == 0)
            wait_done(b);
        else if (seed >> 30 == 1)
            pirn_ctx_cancel(a, 0);
        else
            pirn_yield();
        pirn_ctx_release(seed >> 29 & 1 ? a : b);
        pirn_ctx_release(seed >> 29 & 1 ? b : a);
    }
}

TEST_RUN_ATTR(deadlines_come_and_go, PROCS)
{
    pirn_wg wg = {0};
    for (unsigned i = 0; i < 8; i++)
        pirn_wg_go(&wg, tiny_deadlines, i);
    pirn_wg_wait(&wg);
}

/* --- values ------------------------------------------------------------------------------------------------ */

TEST_RUN_ATTR(values, PROCS)
{
    static int k1, k2, k3;
    int v1, v2, v3;
    pirn_ctx *a = pirn_ctx_with_value(pirn_ctx_background(), &k1, &v1);
    pirn_ctx *b = pirn_ctx_with_value(a, &k2, &v2), *c = pirn_ctx_with_cancel(b);
    pirn_ctx *d = pirn_ctx_with_value(c, &k1, &v3), *e = pirn_ctx_with_value(d, &k2, NULL);
    CHECK(pirn_ctx_value(a, &k1) == &v1);
    CHECK(!pirn_ctx_value(a, &k2));
    CHECK(pirn_ctx_value(c, &k1) == &v1);
    CHECK(pirn_ctx_value(c, &k2) == &v2);
    CHECK(!pirn_ctx_value(c, &k3));
    CHECK(!pirn_ctx_value(c, NULL));
    CHECK(pirn_ctx_value(d, &k1) == &v3); /* the nearest */
    CHECK(pirn_ctx_value(d, &k2) == &v2);
    CHECK(!pirn_ctx_value(e, &k2)); /* hidden by NULL */
    pirn_ctx_release(a);
    pirn_ctx_release(b);
    pirn_ctx_release(c);
    pirn_ctx_release(d);
    CHECK(pirn_ctx_value(e, &k1) == &v3);
    pirn_ctx_release(e);
}

TEST_RUN_ATTR(without_cancel_detaches, PROCS)
{
    static int key;
    pirn_ctx *parent = pirn_ctx_with_timeout(pirn_ctx_background(), 3600 * PIRN_SEC);
    pirn_ctx *value = pirn_ctx_with_value(parent, &key, parent);
    pirn_ctx *apart = pirn_ctx_without_cancel(value), *child = pirn_ctx_with_cancel(apart);
    CHECK_EQ(pirn_ctx_deadline(apart), PIRN_NEVER);
    pirn_ctx_cancel(parent, -EIO);
    check_cancelled(value, -ECANCELED, -EIO);
    check_alive(apart);
    check_alive(child);
    CHECK(pirn_ctx_value(child, &key) == parent);
    pirn_ctx *late = pirn_ctx_without_cancel(value);
    check_alive(late);
    pirn_ctx_cancel(apart, 0); /* and is one itself */
    check_cancelled(child, -ECANCELED, -ECANCELED);
    pirn_ctx_release(late);
    pirn_ctx_release(parent);
    pirn_ctx_release(value);
    pirn_ctx_release(apart);
    pirn_ctx_release(child);
}

/* --- functions that are called ------------------------------------------------------------------------------- */

static atomic_int called;

static void call(void *arg)
{
    (void)arg;
    atomic_fetch_add(&called, 1);
}

TEST_RUN_ATTR(after_func_after_cancel, PROCS)
{
    pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx *ctx = pirn_ctx_with_cancel(parent);
    pirn_timer *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = pirn_ctx_after_func(ctx, call, NULL);
    settle();
    CHECK_EQ(atomic_load(&called), 0);
    pirn_ctx_cancel(parent, 0);
    until_is(&called, 3);
    settle();
    CHECK_EQ(atomic_load(&called), 3);
    for (int i = 0; i < 3; i++) {
        CHECK(!pirn_timer_stop(t[i]));
        pirn_timer_free(t[i]);
    }
    pirn_ctx_release(ctx);
    pirn_ctx_release(parent);
}

TEST_RUN_ATTR(after_func_after_timeout, PROCS)
{
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_MS);
    pirn_timer *t = pirn_ctx_after_func(ctx, call, NULL);
    until_is(&called, 1);
    CHECK_EQ(pirn_ctx_err(ctx), -ETIMEDOUT);
    pirn_timer_free(t);
    pirn_ctx_release(ctx);
}

TEST_RUN_ATTR(after_func_at_once_if_cancelled, PROCS)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx_cancel(ctx, 0);
    pirn_timer *t = pirn_ctx_after_func(ctx, call, NULL);
    until_is(&called, 1);
    CHECK(!pirn_timer_stop(t));
    pirn_timer_free(t);
    pirn_ctx_release(ctx);
}

TEST_RUN_ATTR(after_func_not_after_stop, PROCS)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_timer *t[5];
    for (int i = 0; i < 5; i++)
        t[i] = pirn_ctx_after_func(ctx, call, NULL);
    CHECK(pirn_timer_stop(t[0])); /* the last in the list, one inside, the first */
    CHECK(pirn_timer_stop(t[2]));
    CHECK(pirn_timer_stop_wait(t[4]));
    CHECK(!pirn_timer_stop(t[2]));
    pirn_ctx_cancel(ctx, 0);
    until_is(&called, 2);
    settle();
    CHECK_EQ(atomic_load(&called), 2);
    for (int i = 0; i < 5; i++)
        pirn_timer_free(t[i]);
    pirn_ctx_release(ctx);
}

TEST_RUN_ATTR(after_func_freed_is_not_called, PROCS)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    for (int i = 0; i < 100; i++)
        pirn_timer_free(pirn_ctx_after_func(ctx, call, NULL));
    pirn_ctx_cancel(ctx, 0);
    settle();
    CHECK_EQ(atomic_load(&called), 0);
    pirn_ctx_release(ctx);
}

/* Background and its like: it never comes, and can be stopped once all the same. */
TEST_RUN_ATTR(after_func_of_the_background, PROCS)
{
    pirn_timer *t = pirn_ctx_after_func(pirn_ctx_background(), call, NULL);
    CHECK(pirn_timer_stop(t));
    CHECK(!pirn_timer_stop(t));
    pirn_timer_free(t);
    pirn_timer_free(pirn_ctx_after_func(pirn_ctx_background(), call, NULL));
    CHECK_EQ(atomic_load(&called), 0);
}

static void wait_at(void *arg)
{
    pirn_chan(int) gate = arg;
    atomic_fetch_add(&called, 1);
    pirn_chan_get(gate);
    atomic_fetch_add(&called, 1);
}

/* Neither cancel nor stop waits for fn; stop_wait does. */
TEST_RUN_ATTR(after_func_is_asynchronous, PROCS)
{
    pirn_chan(int) gate = pirn_chan_make(int, 0);
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_timer *t = pirn_ctx_after_func(ctx, wait_at, gate);
    pirn_ctx_cancel(ctx, 0);
    until_is(&called, 1);
    CHECK(!pirn_timer_stop(t));
    CHECK_EQ(atomic_load(&called), 1);
    pirn_go(call, NULL);
    until_is(&called, 2);
    pirn_chan_send(gate, 1);
    CHECK(!pirn_timer_stop_wait(t));
    CHECK_EQ(atomic_load(&called), 3);
    pirn_timer_free(t);
    pirn_ctx_release(ctx);
    pirn_chan_release(gate);
}

static void stop_or_count(pirn_timer *t, atomic_int *stopped)
{
    if (pirn_timer_stop(t))
        atomic_fetch_add(stopped, 1);
}

/* Whoever comes first: it is called, or a stop says that it will not be. */
TEST_RUN_ATTR(after_func_race_of_stop_and_cancel, PROCS)
{
    for (int i = 0; i < (TEST_TSAN ? 40 : 500); i++) {
        atomic_int stopped = 0;
        pirn_wg wg = {0};
        atomic_store(&called, 0);
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_timer *t = pirn_ctx_after_func(ctx, call, NULL);
        pirn_wg_go(&wg, stop_or_count, t, &stopped);
        pirn_wg_go(&wg, stop_or_count, t, &stopped);
        if (i % 2)
            pirn_yield();
        pirn_ctx_release(ctx); /* the timer holds it */
        pirn_wg_wait(&wg);
        pirn_timer_free(t); /* waits for a call */
        CHECK_EQ(atomic_load(&called) + atomic_load(&stopped), 1);
    }
}

/* --- the current context --------------------------------------------------------------------------------------- */

static void see_current(pirn_ctx **seen)
{
    *seen = pirn_ctx_current();
}

static pirn_wg spawned;

static void see_simple(void *arg)
{
    see_current(arg);
    pirn_wg_done(&spawned);
}

/* What a goroutine that is started now, in each way, sees. */
static void check_inherited(pirn_ctx *wanted)
{
    pirn_ctx *seen[4] = {NULL};
    pirn_wg_add(&spawned, 3);
    pirn_go(see_simple, &seen[0]);
    pirn_attr named = {.name = "named"};
    CHECK_EQ(pirn_spawn(NULL, see_simple, &seen[1]), 0);
    CHECK_EQ(pirn_spawn(&named, see_simple, &seen[2]), 0);
    pirn_wg_go(&spawned, see_current, &seen[3]);
    pirn_wg_wait(&spawned);
    for (int i = 0; i < 4; i++)
        CHECK(seen[i] == wanted);
}

TEST_RUN_ATTR(current_is_inherited, PROCS)
{
    pirn_ctx *bg = pirn_ctx_background(), *seen[2];
    pirn_ctx *a = pirn_ctx_with_cancel(bg), *b = pirn_ctx_with_value(a, a, a);
    check_inherited(bg);
    CHECK(pirn_ctx_use(a) == bg);
    check_inherited(a);
    CHECK(pirn_ctx_use(b) == a);
    check_inherited(b);
    pirn_wg_add(&spawned, 2);
    CHECK_EQ(pirn_spawn(&(pirn_attr){.ctx = a}, see_simple, &seen[0]), 0);
    CHECK_EQ(pirn_spawn(&(pirn_attr){.ctx = bg}, see_simple, &seen[1]), 0);
    pirn_wg_wait(&spawned);
    CHECK(seen[0] == a && seen[1] == bg);
    CHECK(pirn_ctx_use(a) == b);
    CHECK(pirn_ctx_use(bg) == a);
    check_inherited(bg);
    CHECK(pirn_ctx_use(b) == bg);
    CHECK(pirn_ctx_current() == b);
    CHECK(pirn_ctx_donev(NULL) == pirn_ctx_donev(b));
    pirn_ctx_release(b); /* cancelled, and still current */
    pirn_ctx_release(a);
    CHECK_EQ(pirn_ctx_err(pirn_ctx_current()), -ECANCELED);
}

/* Many changes: each one is held while it is current, and not longer than it must be. */
TEST_RUN_ATTR(current_changes, PROCS)
{
    size_t before = 0;
    for (int i = 0; i < 20000; i++) {
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_current());
        pirn_ctx *old = pirn_ctx_use(ctx);
        CHECK(pirn_ctx_current() == ctx);
        pirn_ctx_release(ctx);
        CHECK_EQ(pirn_ctx_err(pirn_ctx_current()), -ECANCELED);
        CHECK(pirn_ctx_use(old) == ctx);
        if (i == 100)
            before = test_allocated();
    }
    CHECK_LT((long)(test_allocated() - before), 1 << 20);
    CHECK(pirn_ctx_current() == pirn_ctx_background());
}

static int mark;

static void live_on(pirn_chan(int) gate)
{
    pirn_ctx *ctx = pirn_ctx_current();
    pirn_chan_get(gate); /* whoever made it has ended */
    CHECK_EQ(pirn_ctx_err(ctx), -ECANCELED);
    CHECK_EQ(pirn_ctx_cause(ctx), -EIO);
    CHECK(pirn_ctx_value(ctx, &mark) == &mark);
    CHECK_EQ(pirn_sleep(3600 * PIRN_SEC), -ECANCELED);
    for (int i = 0; i < 3; i++) { /* handles come and go, and it stays */
        pirn_ctx_retain(ctx);
        pirn_ctx_retain(ctx);
        pirn_ctx_release(ctx);
        pirn_ctx_release(ctx);
    }
    pirn_ctx *child = pirn_ctx_with_cancel(ctx);
    CHECK_EQ(pirn_ctx_cause(child), -EIO);
    pirn_ctx_release(child);
    CHECK(pirn_ctx_current() == ctx);
    pirn_wg wg = {0};
    pirn_ctx *seen;
    pirn_wg_go(&wg, see_current, &seen);
    pirn_wg_wait(&wg);
    CHECK(seen == ctx);
    CHECK_EQ(pirn_ctx_cause(ctx), -EIO);
}

static void spawn_and_end(pirn_chan(int) gate, pirn_wg *wg)
{
    pirn_ctx *a = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx *b = pirn_ctx_with_value(a, &mark, &mark);
    pirn_ctx_use(b);
    for (int i = 0; i < 3; i++)
        pirn_wg_go(wg, live_on, gate);
    pirn_ctx_cancel(a, -EIO);
    pirn_ctx_release(a);
    pirn_ctx_release(b);
}

TEST_RUN_ATTR(current_outlives_its_maker, PROCS)
{
    for (int i = 0; i < 20; i++) {
        pirn_chan(int) gate = pirn_chan_make(int, 0);
        pirn_wg wg = {0}, maker = {0};
        pirn_wg_go(&maker, spawn_and_end, gate, &wg);
        pirn_wg_wait(&maker);
        settle();
        pirn_chan_close(gate);
        pirn_wg_wait(&wg);
        pirn_chan_release(gate);
    }
}

/* --- references -------------------------------------------------------------------------------------------------- */

static void release_it(pirn_ctx *ctx)
{
    pirn_ctx_release(ctx);
}

static void release_elsewhere(pirn_ctx *ctx)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, release_it, ctx);
    pirn_wg_wait(&wg);
}

TEST_RUN_ATTR(release_by_the_maker_cancels, PROCS)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx *child = pirn_ctx_with_cancel(ctx);
    CHECK(pirn_ctx_retain(ctx) == ctx);
    pirn_ctx_retain(ctx);
    release_elsewhere(ctx); /* another's: means nothing */
    check_alive(ctx);
    pirn_ctx_release(ctx); /* the maker's */
    check_cancelled(ctx, -ECANCELED, -ECANCELED);
    check_cancelled(child, -ECANCELED, -ECANCELED);
    release_elsewhere(ctx);
    CHECK_EQ(pirn_ctx_err(child), -ECANCELED);
    pirn_ctx_release(child);
}

static void make_one(pirn_ctx **out)
{
    *out = pirn_ctx_with_cancel(pirn_ctx_background());
}

TEST_RUN_ATTR(last_release_cancels, PROCS)
{
    pirn_ctx *ctx;
    pirn_wg wg = {0};
    pirn_wg_go(&wg, make_one, &ctx); /* its maker has ended, and never gives it back */
    pirn_wg_wait(&wg);
    pirn_chan(int) done = pirn_chan_retain(pirn_ctx_done(ctx));
    pirn_ctx_retain(ctx);
    pirn_ctx_release(ctx);
    check_alive(ctx);
    pirn_ctx_release(ctx);
    CHECK_EQ(pirn_chan_try_recv(done, NULL), -1);
    pirn_chan_release(done);
}

static void use_and_release(pirn_ctx *ctx, atomic_int *ready)
{
    atomic_fetch_add(ready, 1);
    until_is(ready, 4);
    pirn_ctx_release(pirn_ctx_retain(ctx));
    pirn_ctx *child = pirn_ctx_with_cancel(ctx);
    pirn_ctx_release(ctx);
    pirn_ctx_release(child);
}

TEST_RUN_ATTR(release_by_all_at_once, PROCS)
{
    for (int i = 0; i < (TEST_TSAN ? 60 : 1000); i++) {
        atomic_int ready = 0;
        pirn_wg wg = {0};
        pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 3600 * PIRN_SEC);
        for (int k = 0; k < 4; k++)
            pirn_wg_go(&wg, use_and_release, pirn_ctx_retain(ctx), &ready);
        until_is(&ready, i % 5);
        pirn_ctx_release(ctx);
        pirn_wg_wait(&wg);
    }
}

static void cancel_it(pirn_ctx *ctx)
{
    pirn_ctx_cancel(ctx, 0);
}

/* R9: the one that waits for it frees it while the cancel is still executing. */
TEST_RUN_ATTR(freed_by_the_one_who_waits, PROCS)
{
    pirn_ctx *parent = pirn_ctx_with_cancel(pirn_ctx_background());
    for (int i = 0; i < (TEST_TSAN ? 200 : TEST_ASAN ? 2000 : 20000); i++) {
        pirn_wg wg = {0};
        pirn_ctx *ctx =
            i % 2 ? pirn_ctx_with_cancel(parent) : pirn_ctx_with_timeout(parent, 3600 * PIRN_SEC);
        pirn_wg_go(&wg, cancel_it, ctx); /* holds nothing */
        for (int k = 0; i % 3 && pirn_chan_try_recv(pirn_ctx_done(ctx), NULL) == 0; k++)
            if (k > 100)
                pirn_yield();
        wait_done(ctx);
        pirn_ctx_release(ctx);
        pirn_wg_wait(&wg);
    }
    pirn_ctx_release(parent);
}

/* --- without a goroutine, without a runtime ------------------------------------------------------------------------- */

TEST(without_a_runtime)
{
    static int key;
    pirn_ctx *a = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx *b = pirn_ctx_with_value(a, &key, a), *c = pirn_ctx_with_timeout(b, 2 * PIRN_MS);
    pirn_ctx *past = pirn_ctx_with_timeout(a, -1);
    CHECK(pirn_ctx_current() == pirn_ctx_background());
    CHECK(pirn_ctx_value(c, &key) == a);
    check_cancelled(past, -ETIMEDOUT, -ETIMEDOUT);
    while (pirn_now() < pirn_ctx_deadline(c))
        ;
    check_cancelled(c, -ETIMEDOUT, -ETIMEDOUT);
    check_alive(b);
    pirn_ctx_cancel(a, -EIO);
    check_cancelled(b, -ECANCELED, -EIO);
    pirn_ctx_release(c);
    pirn_ctx_release(past);
    pirn_ctx_release(a);
    pirn_ctx_release(b);
}

static pirn_ctx *kept;

static void wait_for_ever(pirn_chan(int) never)
{
    pirn_chan_get(never);
}

static int leave_contexts(void *arg)
{
    pirn_chan(int) never = arg;
    pirn_ctx *ctx = pirn_ctx_with_timeout(kept, 3600 * PIRN_SEC);
    pirn_ctx *other = pirn_ctx_with_cancel(ctx);
    pirn_ctx_use(other);
    pirn_ctx_use(ctx);
    pirn_go(wait_for_ever, never); /* dropped with its context */
    pirn_ctx_use(kept);
    pirn_go(wait_for_ever, never);
    pirn_go(wait_for_ever, never);
    pirn_ctx_release(other);
    pirn_ctx_release(ctx);
    settle();
    return 0;
}

/* Goroutines that are dropped give back their contexts; contexts live on. */
TEST_ATTR(outlives_the_runtime, PROCS)
{
    pirn_chan(int) never = pirn_chan_make(int, 0);
    kept = pirn_ctx_with_timeout(pirn_ctx_background(), 3600 * PIRN_SEC);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pirn_run(leave_contexts, never), 0);
        check_alive(kept);
    }
    pirn_chan(int) done = pirn_chan_retain(pirn_ctx_done(kept));
    pirn_ctx_release(kept);
    CHECK_EQ(pirn_chan_try_recv(done, NULL), -1);
    pirn_chan_release(done);
    pirn_chan_release(never);
}

static int make_kept(void *arg)
{
    (void)arg;
    kept = pirn_ctx_with_timeout(pirn_ctx_background(), 3600 * PIRN_SEC);
    return 0;
}

static int use_kept(void *arg)
{
    (void)arg;
    check_alive(kept);
    pirn_ctx *child = pirn_ctx_with_timeout(kept, PIRN_MS);
    wait_done(child);
    check_cancelled(child, -ETIMEDOUT, -ETIMEDOUT);
    pirn_ctx_release(child);
    pirn_ctx_release(kept);
    return 0;
}

/* Its timer was in a heap that is gone. */
TEST_ATTR(used_by_the_next_runtime, PROCS)
{
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pirn_run(make_kept, NULL), 0);
        CHECK_EQ(pirn_run(use_kept, NULL), 0);
    }
}

static void *thread_with_contexts(void *arg)
{
    pirn_ctx *root = arg;
    for (int i = 0; i < 200; i++) {
        atomic_int n = 0;
        pirn_wg wg = {0};
        pirn_ctx *ctx = pirn_ctx_with_cancel(root), *child = pirn_ctx_with_cancel(ctx);
        pirn_ctx *timed = pirn_ctx_with_timeout(root, 10 * PIRN_US);
        pirn_timer *t = pirn_ctx_after_func(child, call, NULL);
        pirn_wg_go(&wg, wait_for_ctx, pirn_ctx_retain(child), &n);
        CHECK(pirn_ctx_current() == pirn_ctx_background());
        CHECK_EQ(pirn_select(PIRN_DONE(timed), PIRN_DONE(child)), 0);
        pirn_ctx_release(ctx);
        check_cancelled(child, -ECANCELED, -ECANCELED);
        pirn_wg_wait(&wg);
        pirn_timer_free(t);
        pirn_ctx_release(child);
        pirn_ctx_release(timed);
    }
    return NULL;
}

TEST_ATTR(foreign_threads, PROCS)
{
    pthread_t t[3];
    CHECK_EQ(pirn_start(NULL), 0);
    pirn_ctx *root = pirn_ctx_with_cancel(pirn_ctx_background());
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, thread_with_contexts, root);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&called), 600);
    pirn_ctx_release(root);
    CHECK_EQ(pirn_stop(), 0);
}

static atomic_int cancelling;

static void *thread_that_cancels(void *arg)
{
    (void)arg;
    while (atomic_load(&cancelling)) {
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_timer *t = pirn_ctx_after_func(ctx, call, NULL);
        pirn_ctx_release(ctx); /* calls it, if it can be */
        pirn_timer_free(t);
    }
    return NULL;
}

/* A thread's call that starts a goroutine, while the runtime ends: neither waits for the other. */
TEST_ATTR(cancel_while_the_runtime_stops, PROCS)
{
    pthread_t t;
    atomic_store(&cancelling, 1);
    pthread_create(&t, NULL, thread_that_cancels, NULL);
    for (int i = 0; i < (TEST_TSAN || TEST_ASAN ? 30 : 500); i++) {
        CHECK_EQ(pirn_start(NULL), 0);
        int err;
        while ((err = pirn_stop()) == -EBUSY) /* it waits in pirn_timer_free */
            ;
        CHECK_EQ(err, 0);
    }
    atomic_store(&cancelling, 0);
    pthread_join(t, NULL);
}

static pirn_timer *timers[4];

static void spin(void *arg)
{
    (void)arg;
    atomic_fetch_add(&called, 1);
    for (;;)
        pirn_id(); /* ends here */
}

static void block(void *never)
{
    atomic_fetch_add(&called, 1);
    pirn_chan_get((pirn_chan(int))never);
    FAIL("a goroutine of a runtime that has ended ran on");
}

static void wait_for_call(pirn_timer *t)
{
    pirn_timer_stop_wait(t);
    FAIL("a goroutine of a runtime that has ended ran on");
}

static int leave_calls(void *never)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    atomic_store(&called, 0);
    pirn_ctx_cancel(ctx, 0);
    timers[0] = pirn_ctx_after_func(ctx, block, never);
    until_is(&called, 1);
    pirn_go(wait_for_call, timers[0]);
    settle();
    timers[1] = pirn_ctx_after_func(ctx, block, never); /* does not begin, perhaps */
    timers[2] = pirn_after_func(0, block, never);
    timers[3] = pirn_ctx_after_func(ctx, spin, NULL);
    for (int i = 0; i < 1000 && pirn_procs(0) > 1 && atomic_load(&called) < 4; i++)
        pirn_yield();
    pirn_ctx_release(ctx);
    return 0;
}

/* Calls that are dropped with the runtime: nobody waits for them, and nothing is left of them. */
TEST_ATTR(dropped_calls, PROCS)
{
    pirn_chan(int) never = pirn_chan_make(int, 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pirn_run(leave_calls, never), 0);
        for (int k = 0; k < 4; k++)
            pirn_timer_free(timers[k]);
    }
    pirn_chan_release(never);
}

/* --- who made it ----------------------------------------------------------------------------------------------- */

static void *makes(void *arg)
{
    *(pirn_ctx **)arg = pirn_ctx_with_cancel(pirn_ctx_background());
    return NULL;
}

static void *retains_and_releases(void *arg)
{
    pirn_ctx_release(pirn_ctx_retain(arg));
    return NULL;
}

static void in_a_thread(void *(*fn)(void *), void *arg)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, fn, arg), 0);
    pthread_join(t, NULL);
}

static int makes_in_run(void *arg)
{
    makes(arg);
    return 0;
}

static int retains_in_run(void *arg)
{
    retains_and_releases(arg);
    return 0;
}

/* A thread that has the place of one that is gone, and goroutine 1 of another runtime, are not the maker. */
TEST_ATTR(names_are_not_used_again, PROCS)
{
    pirn_ctx *ctx;
    in_a_thread(makes, &ctx);
    for (int i = 0; i < 10; i++)
        in_a_thread(retains_and_releases, ctx);
    CHECK_EQ(pirn_ctx_err(ctx), 0);
    pirn_ctx_release(ctx);
    CHECK_EQ(pirn_run(makes_in_run, &ctx), 0);
    CHECK_EQ(pirn_run(retains_in_run, ctx), 0);
    CHECK_EQ(pirn_ctx_err(ctx), 0);
    pirn_ctx_release(ctx);
}
