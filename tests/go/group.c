/* SPDX-License-Identifier: MIT */
/* Groups: goroutines that end together. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define LONG (3600 * PIRN_SEC)

static atomic_int ended;

static void settle(void)
{
    for (int i = 0; i < 20; i++)
        pirn_yield();
}

static int give(int result)
{
    pirn_yield();
    atomic_fetch_add(&ended, 1);
    return result;
}

/* Until it is cancelled; then takes its time. */
static int linger(void)
{
    int err = pirn_sleep(LONG);
    settle();
    atomic_fetch_add(&ended, 1);
    return err;
}

TEST_RUN_ATTR(all_well, PROCS)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    CHECK_EQ(pirn_group_wait(&g), 0); /* nobody */
    pirn_group_init(&g, pirn_ctx_background());
    for (int i = 0; i < 100; i++)
        pirn_group_go(&g, give, 0);
    CHECK_EQ(pirn_ctx_err(pirn_group_ctx(&g)), 0);
    CHECK_EQ(pirn_group_wait(&g), 0);
    CHECK_EQ(atomic_load(&ended), 100);
}

/* Any arguments, and the result is the function's own. */
static int mixed(int a, double b, const char *c, long d, float e, char f)
{
    return a == 1 && b == 2.5 && !strcmp(c, "three") && d == -4 && e == 5.5f && f == '6' ? -77 : 0;
}

TEST_RUN_ATTR(arguments_and_result, PROCS)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, mixed, 1, 2.5, "three", -4, 5.5f, '6');
    CHECK_EQ(pirn_group_wait(&g), -77);
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, give, INT32_MIN);
    CHECK_EQ(pirn_group_wait(&g), INT32_MIN);
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, give, 3); /* not an errno, but an error all the same */
    CHECK_EQ(pirn_group_wait(&g), 3);
}

TEST_RUN_ATTR(first_error_wins_and_cancels, PROCS)
{
    for (int i = 0; i < 50; i++) {
        pirn_group g;
        atomic_store(&ended, 0);
        pirn_group_init(&g, NULL);
        pirn_ctx *ctx = pirn_ctx_retain(pirn_group_ctx(&g));
        for (int k = 0; k < 10; k++)
            pirn_group_go(&g, linger); /* these say -ECANCELED, later */
        pirn_group_go(&g, give, -EIO);
        for (int k = 0; k < 10; k++)
            pirn_group_go(&g, linger);
        CHECK_EQ(pirn_group_wait(&g), -EIO);
        CHECK_EQ(atomic_load(&ended), 21);
        CHECK_EQ(pirn_ctx_err(ctx), -ECANCELED);
        CHECK_EQ(pirn_ctx_cause(ctx), -EIO);
        pirn_ctx_release(ctx);
    }
}

static int fail_at(atomic_int *ready, int err)
{
    atomic_fetch_add(ready, 1);
    while (atomic_load(ready) < 8)
        pirn_yield();
    return err;
}

TEST_RUN_ATTR(many_errors_at_once, PROCS)
{
    for (int i = 0; i < 200; i++) {
        pirn_group g;
        atomic_int ready = 0;
        pirn_group_init(&g, NULL);
        pirn_ctx *ctx = pirn_ctx_retain(pirn_group_ctx(&g));
        for (int k = 1; k <= 8; k++)
            pirn_group_go(&g, fail_at, &ready, -k);
        int err = pirn_group_wait(&g);
        CHECK_LE(-8, err);
        CHECK_LE(err, -1);
        CHECK_EQ(pirn_ctx_cause(ctx), err);
        pirn_ctx_release(ctx);
    }
}

/* --- contexts -------------------------------------------------------------------------------------------------- */

static int see_context(pirn_ctx *wanted)
{
    return pirn_ctx_current() == wanted ? 0 : -1;
}

TEST_RUN_ATTR(context_of_the_group, PROCS)
{
    static int key;
    pirn_group g;
    pirn_ctx *parent = pirn_ctx_with_value(pirn_ctx_background(), &key, &g);
    pirn_group_init(&g, parent);
    pirn_ctx *ctx = pirn_group_ctx(&g);
    CHECK(ctx != parent);
    CHECK(pirn_ctx_value(ctx, &key) == &g);
    CHECK(pirn_ctx_current() == pirn_ctx_background()); /* the caller's stays */
    pirn_group_go(&g, see_context, ctx);
    CHECK_EQ(pirn_group_wait(&g), 0);
    pirn_ctx_use(parent);
    pirn_group_init(&g, NULL);
    ctx = pirn_ctx_retain(pirn_group_ctx(&g));
    CHECK(pirn_ctx_value(ctx, &key) == &g);
    pirn_group_go(&g, see_context, ctx);
    CHECK_EQ(pirn_group_wait(&g), 0);
    CHECK_EQ(pirn_ctx_err(ctx), -ECANCELED); /* as Go's errgroup: over when waited for */
    CHECK_EQ(pirn_ctx_err(parent), 0);
    pirn_ctx_release(ctx);
    pirn_ctx_release(parent);
}

TEST_RUN_ATTR(group_cancel, PROCS)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    for (int i = 0; i < 10; i++)
        pirn_group_go(&g, linger);
    settle();
    CHECK_EQ(atomic_load(&ended), 0);
    pirn_group_cancel(&g);
    pirn_group_cancel(&g);
    pirn_group_go(&g, linger); /* too late, but it is started, and sees it */
    CHECK_EQ(pirn_group_wait(&g), -ECANCELED);
    CHECK_EQ(atomic_load(&ended), 11);
}

TEST_RUN_ATTR(deadline_of_the_parent, PROCS)
{
    pirn_group g;
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_MS);
    pirn_group_init(&g, ctx);
    for (int i = 0; i < 10; i++)
        pirn_group_go(&g, linger);
    CHECK_EQ(pirn_group_wait(&g), -ETIMEDOUT);
    CHECK_EQ(atomic_load(&ended), 10);
    pirn_ctx_release(ctx);
}

/* --- R3: nothing is left behind --------------------------------------------------------------------------------- */

static int stubborn(atomic_int *stop)
{
    CHECK_EQ(pirn_sleep(LONG), -ECANCELED);
    while (!atomic_load(stop)) /* cancelled, and not done */
        pirn_yield();
    atomic_fetch_add(&ended, 1);
    return 0;
}

static void wait_in(pirn_ctx *ctx, pirn_ctx *parent, atomic_int *stop, atomic_int *returned)
{
    pirn_group g;
    pirn_ctx_use(ctx);
    pirn_group_init(&g, parent);
    for (int i = 0; i < 5; i++)
        pirn_group_go(&g, stubborn, stop);
    CHECK_EQ(pirn_group_wait(&g), 0);
    CHECK_EQ(atomic_load(&ended), 5);
    atomic_store(returned, 1);
}

/* The group's parent is the waiter's context, or has nothing to do with it. */
TEST_RUN_ATTR(cancelling_the_waiter, PROCS)
{
    for (int i = 0; i < 30; i++) {
        atomic_int stop = 0, returned = 0;
        pirn_wg wg = {0};
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        atomic_store(&ended, 0);
        pirn_wg_go(&wg, wait_in, ctx, i % 2 ? NULL : pirn_ctx_background(), &stop, &returned);
        if (i % 3)
            settle();
        pirn_ctx_cancel(ctx, 0); /* perhaps before it waits */
        settle();
        CHECK_EQ(atomic_load(&returned), 0);
        CHECK_EQ(atomic_load(&ended), 0);
        atomic_store(&stop, 1);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&returned), 1);
        pirn_ctx_release(ctx);
    }
}

/* What the group's context says of it is what was said of the waiter's. */
static void wait_for_cause(pirn_ctx *ctx, pirn_ctx *parent, int cause, atomic_int *stop)
{
    pirn_group g;
    pirn_ctx_use(ctx);
    pirn_group_init(&g, parent);
    pirn_ctx *own = pirn_ctx_retain(pirn_group_ctx(&g));
    pirn_group_go(&g, stubborn, stop);
    CHECK_EQ(pirn_group_wait(&g), 0);
    CHECK_EQ(pirn_ctx_err(own), -ECANCELED);
    CHECK_EQ(pirn_ctx_cause(own), cause);
    pirn_ctx_release(own);
}

TEST_RUN_ATTR(cause_of_cancelling_the_waiter, PROCS)
{
    static const int causes[] = {0, -EIO, -ECANCELED, -ETIMEDOUT};
    for (int i = 0; i < 48; i++) {
        atomic_int stop = 0;
        pirn_wg wg = {0};
        int said = causes[i / 2 % 4], cause = said ? said : -ECANCELED;
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_ctx *above = i % 2 ? NULL : pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_wg_go(&wg, wait_for_cause, ctx, above, cause, &stop);
        if (i % 3)
            settle();
        pirn_ctx_cancel(ctx, said); /* perhaps before it waits */
        atomic_store(&stop, 1);
        pirn_wg_wait(&wg);
        if (above) {
            CHECK_EQ(pirn_ctx_err(above), 0);
            pirn_ctx_release(above);
        }
        pirn_ctx_release(ctx);
    }
}

static int quick(void)
{
    return 0;
}

static void wait_quickly(pirn_ctx *ctx, atomic_int *ready)
{
    pirn_ctx_use(ctx);
    pirn_group g;
    pirn_group_init(&g, pirn_ctx_background());
    pirn_group_go(&g, quick);
    pirn_group_go(&g, quick);
    atomic_fetch_add(ready, 1);
    CHECK_EQ(pirn_group_wait(&g), 0);
    memset(&g, 0xee, sizeof g);
}

/* The last one ends while the waiter is cancelled. */
TEST_RUN_ATTR(end_and_cancel_at_once, PROCS)
{
    for (int i = 0; i < (TEST_TSAN ? 50 : 2000); i++) {
        atomic_int ready = 0;
        pirn_wg wg = {0};
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        pirn_wg_go(&wg, wait_quickly, ctx, &ready);
        while (i % 2 && !atomic_load(&ready))
            pirn_yield();
        pirn_ctx_cancel(ctx, 0);
        pirn_wg_wait(&wg);
        pirn_ctx_release(ctx);
    }
}

/* --- limits ------------------------------------------------------------------------------------------------------ */

static atomic_int inside, most;

static int one_of_few(int yields)
{
    int n = atomic_fetch_add(&inside, 1) + 1, m = atomic_load(&most);
    while (n > m && !atomic_compare_exchange_weak(&most, &m, n))
        ;
    for (int i = 0; i < yields; i++)
        pirn_yield();
    atomic_fetch_sub(&inside, 1);
    atomic_fetch_add(&ended, 1);
    return 0;
}

TEST_RUN_ATTR(limit, PROCS)
{
    for (int limit = 1; limit < 20; limit += 6) {
        pirn_group g;
        atomic_store(&most, 0);
        atomic_store(&ended, 0);
        pirn_group_init(&g, NULL);
        pirn_group_set_limit(&g, limit);
        for (int i = 0; i < 200; i++)
            pirn_group_go(&g, one_of_few, i % 7);
        CHECK_EQ(pirn_group_wait(&g), 0);
        CHECK_EQ(atomic_load(&ended), 200);
        CHECK_LE(atomic_load(&most), limit);
    }
}

static int wait_for_gate(pirn_chan(int) gate)
{
    pirn_chan_get(gate);
    return 0;
}

TEST_RUN_ATTR(try_go, PROCS)
{
    pirn_group g;
    pirn_chan(int) gate = pirn_chan_make(int, 0);
    pirn_group_init(&g, NULL);
    pirn_group_set_limit(&g, 3);
    for (int i = 0; i < 3; i++)
        CHECK(pirn_group_try_go(&g, wait_for_gate, gate));
    for (int i = 0; i < 5; i++)
        CHECK(!pirn_group_try_go(&g, wait_for_gate, gate));
    pirn_chan_send(gate, 1);
    while (!pirn_group_try_go(&g, wait_for_gate, gate)) /* when that one has ended */
        pirn_yield();
    CHECK(!pirn_group_try_go(&g, wait_for_gate, gate));
    pirn_chan_close(gate);
    CHECK_EQ(pirn_group_wait(&g), 0);
    pirn_group_init(&g, NULL);
    pirn_group_set_limit(&g, 0);
    CHECK(!pirn_group_try_go(&g, wait_for_gate, gate));
    pirn_group_set_limit(&g, -1); /* nobody is active */
    for (int i = 0; i < 100; i++)
        CHECK(pirn_group_try_go(&g, wait_for_gate, gate));
    CHECK_EQ(pirn_group_wait(&g), 0);
    pirn_chan_release(gate);
}

/* Several wait for room; places are handed on, none is lost. */
static void fill(pirn_group *g, int n)
{
    for (int i = 0; i < n; i++)
        pirn_group_go(g, one_of_few, i % 3);
}

TEST_RUN_ATTR(many_wait_for_room, PROCS)
{
    pirn_group g;
    pirn_wg wg = {0};
    pirn_group_init(&g, NULL);
    pirn_group_set_limit(&g, 2);
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, fill, &g, 50);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_group_wait(&g), 0);
    CHECK_EQ(atomic_load(&ended), 400);
    CHECK_LE(atomic_load(&most), 2);
}

/* --- trees --------------------------------------------------------------------------------------------------------- */

static int tree(int depth, int fails)
{
    pirn_group g;
    if (depth == 0) {
        atomic_fetch_add(&ended, 1);
        return fails ? -EIO : 0;
    }
    pirn_group_init(&g, NULL); /* below the group that this one is in */
    for (int i = 0; i < 3; i++)
        pirn_group_go(&g, tree, depth - 1, fails && i == 1);
    return pirn_group_wait(&g);
}

TEST_RUN_ATTR(nested, PROCS)
{
    CHECK_EQ(tree(5, false), 0);
    CHECK_EQ(atomic_load(&ended), 243);
    CHECK_EQ(tree(5, true), -EIO);
    CHECK_EQ(atomic_load(&ended), 486);
}

static int nested_sleepers(int depth)
{
    pirn_group g;
    if (depth == 0) {
        int err = pirn_sleep(LONG);
        atomic_fetch_add(&ended, 1);
        return err;
    }
    pirn_group_init(&g, NULL);
    for (int i = 0; i < 3; i++)
        pirn_group_go(&g, nested_sleepers, depth - 1);
    return pirn_group_wait(&g);
}

TEST_RUN_ATTR(nested_cancel, PROCS)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, nested_sleepers, 4);
    settle();
    pirn_group_go(&g, give, -EPROTO);
    CHECK_EQ(pirn_group_wait(&g), -EPROTO);
    CHECK_EQ(atomic_load(&ended), 82);
}

static int spread(pirn_group *g, int n)
{
    atomic_fetch_add(&ended, 1);
    if (n > 1) {
        pirn_group_go(g, spread, g, n / 2);
        pirn_group_go(g, spread, g, n - n / 2);
    }
    return 0;
}

/* Children start siblings: it is not over before the last of them. */
TEST_RUN_ATTR(children_spawn_siblings, PROCS)
{
    for (int i = 0; i < 20; i++) {
        pirn_group g;
        atomic_store(&ended, 0);
        pirn_group_init(&g, NULL);
        pirn_group_go(&g, spread, &g, 200);
        CHECK_EQ(pirn_group_wait(&g), 0);
        CHECK_EQ(atomic_load(&ended), 399);
    }
}

static int leave(int how)
{
    atomic_fetch_add(&ended, 1);
    if (how)
        pirn_yield();
    pirn_exit();
}

TEST_RUN_ATTR(exit_in_a_child, PROCS)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    for (int i = 0; i < 20; i++)
        pirn_group_go(&g, leave, i % 2);
    CHECK_EQ(pirn_group_wait(&g), 0);
    CHECK_EQ(atomic_load(&ended), 20);
    pirn_group_init(&g, NULL);
    pirn_group_set_limit(&g, 1);
    for (int i = 0; i < 20; i++)
        pirn_group_go(&g, leave, i % 2);
    pirn_group_go(&g, give, -EIO);
    CHECK_EQ(pirn_group_wait(&g), -EIO);
}

TEST_RUN_ATTR(ten_thousand, PROCS)
{
    int n = TEST_TSAN ? 200 : 10000; /* its clocks grow with the fibers */
    pirn_group g;
    pirn_chan(int) gate = pirn_chan_make(int, 0);
    pirn_group_init(&g, NULL);
    for (int i = 0; i < n; i++)
        pirn_group_go(&g, wait_for_gate, gate);
    pirn_chan_close(gate);
    CHECK_EQ(pirn_group_wait(&g), 0);
    pirn_group_init(&g, NULL);
    for (int i = 0; i < n; i++)
        pirn_group_go(&g, linger);
    settle();
    pirn_group_go(&g, give, -EIO);
    CHECK_EQ(pirn_group_wait(&g), -EIO);
    CHECK_EQ(atomic_load(&ended), n + 1);
    pirn_chan_release(gate);
}

/* --- R9: the memory of a group is used again at once ------------------------------------------------------------------ */

static void short_life(int children)
{
    pirn_group *g = malloc(sizeof *g), local;
    pirn_group_init(g, NULL);
    pirn_group_init(&local, NULL);
    for (int i = 0; i < children; i++) {
        pirn_group_go(g, quick);
        pirn_group_go(&local, give, i % 3 ? 0 : -EIO);
    }
    CHECK_EQ(pirn_group_wait(g), 0);
    free(g);
    CHECK_EQ(pirn_group_wait(&local), -EIO);
    memset(&local, 0xee, sizeof local);
}

TEST_RUN_ATTR(gone_at_once, PROCS)
{
    for (int i = 0; i < (TEST_TSAN || TEST_ASAN ? 100 : 3000); i++)
        short_life(1 + i % 4);
}

static void cancel_from_outside(pirn_group *g)
{
    pirn_group_cancel(g);
}

/* While the cancel that ended it is still executing. */
TEST_RUN_ATTR(gone_while_it_is_cancelled, PROCS)
{
    for (int i = 0; i < (TEST_TSAN || TEST_ASAN ? 300 : 5000); i++) {
        pirn_wg wg = {0};
        pirn_group *g = malloc(sizeof *g);
        pirn_group_init(g, NULL);
        pirn_group_go(g, linger);
        pirn_wg_go(&wg, cancel_from_outside, g);
        CHECK_EQ(pirn_group_wait(g), -ECANCELED);
        free(g);
        pirn_wg_wait(&wg);
    }
}

/* --- other threads ------------------------------------------------------------------------------------------------------ */

static void *thread_with_groups(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        pirn_group g;
        pirn_group_init(&g, NULL);
        for (int k = 0; k < 5; k++)
            pirn_group_go(&g, linger);
        pirn_group_go(&g, give, -EIO);
        CHECK_EQ(pirn_group_wait(&g), -EIO);
        pirn_group_init(&g, NULL);
        pirn_group_set_limit(&g, 2);
        for (int k = 0; k < 10; k++)
            pirn_group_go(&g, quick); /* waits for room: blocks this thread alone */
        CHECK_EQ(pirn_group_wait(&g), 0);
    }
    return NULL;
}

TEST_ATTR(threads, PROCS)
{
    pthread_t t[3];
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, thread_with_groups, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&ended), 3 * 100 * 6);
    CHECK_EQ(pirn_stop(), 0);
}

/* --- the end of the runtime -------------------------------------------------------------------------------------- */

static pirn_group *lasting;
static atomic_int arrived;

static int waits_for_ever(void)
{
    atomic_fetch_add(&arrived, 1);
    pirn_chan_recv((pirn_chan(int))NULL, NULL);
    return 0;
}

static void wants_room(void)
{
    atomic_fetch_add(&arrived, 1);
    pirn_group_go(lasting, waits_for_ever);
}

static void waits_for_group(void)
{
    atomic_fetch_add(&arrived, 1);
    pirn_group_wait(lasting);
}

static int leaves_waiters(void *arg)
{
    (void)arg;
    pirn_group_init(lasting, pirn_ctx_background());
    pirn_group_set_limit(lasting, 1);
    atomic_store(&arrived, 0);
    pirn_group_go(lasting, waits_for_ever);
    pirn_go(wants_room);
    pirn_go(waits_for_group);
    while (atomic_load(&arrived) < 3)
        pirn_yield();
    for (int i = 0; i < 100; i++)
        pirn_yield();
    return 0;
}

static int uses_it_again(void *arg)
{
    (void)arg;
    atomic_store(&arrived, 0);
    pirn_go(wants_room); /* the dropped one has its place still */
    pirn_go(waits_for_group);
    while (atomic_load(&arrived) < 2)
        pirn_yield();
    for (int i = 0; i < 100; i++)
        pirn_yield();
    return 0;
}

/* Goroutines that waited in it are gone with their runtime, and it does not know them any more. */
TEST_ATTR(outlives_the_runtime, PROCS)
{
    lasting = calloc(1, sizeof *lasting);
    CHECK_EQ(pirn_run(leaves_waiters, NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pirn_run(uses_it_again, NULL), 0);
    pirn_ctx_release(pirn_group_ctx(lasting));
    free(lasting);
}
