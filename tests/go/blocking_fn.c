/* SPDX-License-Identifier: MIT */
/* pirn_blocking(), the threads that it takes, and threads that are not pirn's. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "go/busy.h"

static int fds[2];

static void *returns_next(void *arg)
{
    return (char *)arg + 1;
}

TEST_RUN_ATTR(returns_the_value, PROCS)
{
    static char text[1001];
    uint64_t me = pirn_id();
    for (int i = 0; i < 1000; i++) {
        CHECK(pirn_blocking(returns_next, &text[i]) == &text[i + 1]);
        CHECK_EQ(pirn_id(), me);
    }
}

static void *reads(void *arg)
{
    char byte;
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    return arg;
}

static atomic_int entered, returned;

static void reads_blocking(int i)
{
    atomic_fetch_add(&entered, 1);
    CHECK(pirn_blocking(reads, &fds[i % 2]) == &fds[i % 2]);
    atomic_fetch_add(&returned, 1);
}

TEST_RUN_ATTR(others_run_meanwhile, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    int n = 4 * pirn_procs(0);
    for (int round = 0; round < 5; round++) {
        atomic_store(&entered, 0);
        atomic_store(&returned, 0);
        CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
        for (int i = 0; i < n; i++)
            pirn_wg_go(&wg, reads_blocking, i);
        YIELD_UNTIL(atomic_load(&entered) == n);
        for (int i = 0; i < 100; i++)
            pirn_yield();
        CHECK_EQ(atomic_load(&returned), 0);
        CHECK_EQ(pirn_num_goroutines(), n + 1);
        for (int i = 0; i < n; i++)
            CHECK_EQ(write(fds[1], "x", 1), 1);
        pirn_wg_wait(&wg);
        close(fds[0]);
        close(fds[1]);
    }
}

static void *sleeps_a_bit(void *arg)
{
    plain_sleep(20 * PIRN_US);
    return arg;
}

/* One after the other: the threads of those before are used again. */
TEST_RUN_ATTR(threads_are_reused, PROCS, .timeout = 60)
{
    uint64_t most = 0;
    for (int i = 0; i < 50; i++)
        pirn_blocking(sleeps_a_bit, NULL);
    for (int i = 0; i < 1000; i++) {
        pirn_blocking(sleeps_a_bit, NULL);
        most = metrics().threads > most ? metrics().threads : most;
    }
    CHECK_LE(most, metrics().procs + 8);
}

/* Some at a time: about as many threads as there are callers, however often they call. */
static void calls_often(int n)
{
    for (int i = 0; i < n; i++)
        pirn_blocking(sleeps_a_bit, NULL);
}

TEST_RUN_ATTR(threads_are_reused_by_some, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 20; i++)
        pirn_wg_go(&wg, calls_often, TEST_TSAN ? 20 : 200);
    pirn_wg_wait(&wg);
    CHECK_LE(metrics().threads, 2 * metrics().procs + 20 + 4);
}

/* A result and its errno, by way of what fn returns. */
static void *fails(void *arg)
{
    char byte;
    *(int *)arg = read(-1, &byte, 1) < 0 ? errno : 0;
    return arg;
}

TEST_RUN_ATTR(errno_inside, PROCS)
{
    for (int i = 0; i < 200; i++) {
        int why = 0;
        CHECK(pirn_blocking(fails, &why) == &why);
        CHECK_EQ(why, EBADF);
    }
}

/* --- outside ---------------------------------------------------------------------------------- */

static void call_outside(void)
{
    static char text[2];
    for (int i = 0; i < 100; i++) {
        pirn_blocking_begin();
        pirn_blocking_end();
        CHECK(pirn_blocking(returns_next, text) == text + 1);
    }
    pirn_blocking_begin();
    plain_sleep(PIRN_MS);
    pirn_blocking_end();
}

static void *calls_outside(void *arg)
{
    call_outside();
    return arg;
}

static int beside_thread(void *arg)
{
    pthread_t t;
    (void)arg;
    CHECK_EQ(pthread_create(&t, NULL, calls_outside, NULL), 0);
    for (int i = 0; i < 100; i++)
        pirn_yield();
    CHECK_EQ(pthread_join(t, NULL), 0);
    return 0;
}

/* Threads of the program's own may call them: nothing happens, with or without a runtime. */
TEST_ATTR(outside, PROCS)
{
    call_outside();
    CHECK_EQ(pirn_run(beside_thread, NULL), 0);
    call_outside();
    CHECK_EQ(pirn_start(NULL), 0);
    call_outside();
    CHECK_EQ(pirn_stop(), 0);
}

/* --- the end ---------------------------------------------------------------------------------- */

static atomic_bool ending;

static void in_a_call_at_the_end(void)
{
    pirn_blocking_begin();
    atomic_fetch_add(&entered, 1);
    while (!atomic_load(&ending))
        plain_sleep(PIRN_MS);
    plain_sleep(300 * PIRN_MS); /* the end has begun by then */
    atomic_fetch_add(&returned, 1);
    pirn_blocking_end();
    FAIL("ran on after the end of the runtime");
}

static int returns_beside_calls(void *arg)
{
    (void)arg;
    for (int i = 0; i < 8; i++)
        pirn_go(in_a_call_at_the_end);
    YIELD_UNTIL(atomic_load(&entered) == 8);
    atomic_store(&ending, true);
    return 0;
}

/* Main returns while others are in calls: those end at their pirn_blocking_end. */
TEST_ATTR(end_beside_calls, PROCS, .timeout = 60)
{
    pirn_config config = {.stop_grace = LONG};
    for (int i = 0; i < 5; i++) {
        atomic_store(&entered, 0);
        atomic_store(&returned, 0);
        atomic_store(&ending, false);
        CHECK_EQ(pirn_run_config(&config, returns_beside_calls, NULL), 0);
        CHECK_EQ(atomic_load(&returned), 8);
    }
}
