/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that are locked to a thread (conformance 38, 57 to 59, 64). With PIRN_DEBUG=move=1 every
 * other goroutine changes its thread at each switch: so it shows who is locked.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "go/busy.h"

#define MOVE .env = "PIRN_DEBUG=move=1"

static pirn_wg all;
static atomic_int flag;

/* --- the same thread (57) --------------------------------------------------------------------- */

static void nothing(void)
{
}

/* Everything that parks. */
static void park_in_all_ways(int i)
{
    static pirn_mutex mutex;
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_yield();
    pirn_sleep(i % 5 * 10 * PIRN_US);
    pirn_wg_go(&wg, nothing);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_chan_recv_until(c, NULL, pirn_now() + 10 * PIRN_US), -ETIMEDOUT);
    pirn_mutex_lock(&mutex);
    pirn_yield();
    pirn_mutex_unlock(&mutex);
    pirn_chan_release(c);
}

static void stays(int n)
{
    pirn_lock_thread();
    pid_t tid = gettid();
    pthread_t self = pthread_self();
    for (int i = 0; i < n; i++) {
        park_in_all_ways(i);
        CHECK_EQ(gettid(), tid);
        CHECK(pthread_equal(pthread_self(), self));
    }
    pirn_unlock_thread();
    pirn_yield();
}

static void yields_until_flag(void)
{
    while (!atomic_load(&flag))
        pirn_yield();
}

static void all_stay(int n)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 4; i++)
        pirn_wg_go(&all, yields_until_flag);
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, stays, n);
    pirn_wg_wait(&wg);
    atomic_store(&flag, 1);
    pirn_wg_wait(&all);
}

TEST_RUN_ATTR(same_thread, PROCS, .timeout = 60)
{
    all_stay(TEST_TSAN ? 10 : 50);
}

TEST_RUN_ATTR(same_thread_move, PROCS, .timeout = 60, MOVE)
{
    all_stay(10);
}

/* --- nesting (58) ----------------------------------------------------------------------------- */

static bool moves(void)
{
    pid_t tid = gettid();
    pirn_yield();
    bool moved = gettid() != tid;
    for (int i = 0; i < 5; i++) {
        tid = gettid();
        pirn_yield();
        CHECK_EQ(gettid() != tid, moved);
    }
    return moved;
}

static void nests(void)
{
    CHECK(moves());
    for (int depth = 1; depth < 5; depth++) {
        for (int i = 0; i < depth; i++)
            pirn_lock_thread();
        for (int i = 0; i < depth; i++) {
            CHECK(!moves());
            pirn_unlock_thread();
        }
        CHECK(moves());
    }
}

/* An unlock too many does nothing, as in Go: it is not counted either. */
static void unlocks_too_often(void)
{
    for (int i = 0; i < 3; i++)
        pirn_unlock_thread();
    CHECK(moves());
    pirn_lock_thread();
    CHECK(!moves());
    pirn_unlock_thread();
    pirn_unlock_thread();
    CHECK(moves());
}

TEST_RUN_ATTR(nesting, PROCS, MOVE, .timeout = 60)
{
    pirn_wg_go(&all, nests);
    pirn_wg_wait(&all);
}

TEST_RUN_ATTR(unlock_without_lock, PROCS, MOVE, .timeout = 60)
{
    pirn_wg_go(&all, unlocks_too_often);
    pirn_wg_wait(&all);
}

/* --- nobody else ------------------------------------------------------------------------------ */

#define LOCKED 4
static atomic_int locked_tids[LOCKED];

static void is_alone(int i)
{
    pirn_lock_thread();
    atomic_store(&locked_tids[i], gettid());
    for (int k = 0; k < 100; k++) {
        pirn_yield();
        pirn_sleep(50 * PIRN_US);
    }
    atomic_store(&locked_tids[i], 0);
    pirn_unlock_thread();
}

static void looks_around(void)
{
    while (!atomic_load(&flag)) {
        for (int i = 0; i < LOCKED; i++) {
            CHECK_NE(atomic_load(&locked_tids[i]), gettid());
        }
        pirn_yield();
    }
}

TEST_RUN_ATTR(nobody_else_runs_there, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&all, looks_around);
    for (int i = 0; i < LOCKED; i++)
        pirn_wg_go(&wg, is_alone, i);
    pirn_wg_wait(&wg);
    atomic_store(&flag, 1);
    pirn_wg_wait(&all);
}

/* --- exit while locked (59) ------------------------------------------------------------------- */

static void ends_locked(atomic_int *tid, bool exits)
{
    pirn_lock_thread();
    pirn_lock_thread();
    pirn_yield();
    atomic_store(tid, gettid());
    pirn_unlock_thread(); /* one is left */
    if (exits)
        pirn_exit();
}

TEST_RUN_ATTR(exit_ends_the_thread, PROCS, .timeout = 60)
{
    for (int i = 0; i < (TEST_TSAN ? 20 : 100); i++) {
        atomic_int tids[4] = {0};
        for (int k = 0; k < 4; k++)
            pirn_wg_go(&all, ends_locked, &tids[k], k % 2);
        pirn_wg_wait(&all);
        for (int k = 0; k < 4; k++) {
            CHECK_NE(atomic_load(&tids[k]), 0);
            SLEEP_UNTIL(!thread_exists(atomic_load(&tids[k])));
        }
    }
    CHECK_LE(metrics().threads, metrics().procs + 16);
}

/* If all locks were undone, the thread lives on with whoever comes next. */
static void ends_unlocked(void)
{
    pirn_lock_thread();
    pirn_yield();
    pirn_unlock_thread();
}

TEST_RUN_ATTR(exit_unlocked, PROCS)
{
    for (int i = 0; i < 1000; i++) {
        pirn_wg_go(&all, ends_unlocked);
        pirn_wg_wait(&all);
    }
    CHECK_LE(metrics().threads, metrics().procs + 16);
}

/* --- main ------------------------------------------------------------------------------------- */

/* On the thread that called pirn_run, which runs nobody else. */
static int main_locks(void *arg)
{
    pid_t runner = *(pid_t *)arg;
    CHECK_NE(gettid(), runner);
    for (int i = 0; i < 20; i++) {
        pirn_lock_thread();
        CHECK_EQ(gettid(), runner);
        park_in_all_ways(i);
        CHECK_EQ(gettid(), runner);
        pirn_unlock_thread();
        YIELD_UNTIL(gettid() != runner);
    }
    pirn_lock_thread();
    atomic_store(&locked_tids[0], runner);
    for (int i = 0; i < 4; i++)
        pirn_wg_go(&all, looks_around);
    for (int i = 0; i < 100; i++) {
        pirn_sleep(50 * PIRN_US);
        CHECK_EQ(gettid(), runner);
    }
    atomic_store(&flag, 1);
    pirn_wg_wait(&all);
    return 7; /* locked, as most programs with a main thread end */
}

TEST_ATTR(main_on_the_thread_of_run, PROCS)
{
    pid_t me = gettid();
    CHECK_EQ(me, getpid());
    for (int i = 0; i < 3; i++) {
        atomic_store(&flag, 0);
        CHECK_EQ(pirn_run(main_locks, &me), 7);
        CHECK_EQ(gettid(), me);
    }
}

static void *runs(void *arg)
{
    pid_t me = gettid();
    CHECK_EQ(pirn_run(main_locks, &me), 7);
    return arg;
}

TEST_ATTR(main_on_another_thread, PROCS)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, runs, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

/* Another thread's pirn_run comes and goes meanwhile: its goroutine is not the first, and has no thread. */
static int returns(void *arg)
{
    (void)arg;
    pirn_lock_thread();
    pirn_yield();
    pirn_unlock_thread();
    return 3;
}

static void *runs_beside(void *arg)
{
    CHECK_EQ(pirn_run(returns, NULL), 3);
    return arg;
}

static int main_locks_beside(void *arg)
{
    pid_t runner = *(pid_t *)arg;
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, runs_beside, NULL), 0);
        if (i % 2)
            CHECK_EQ(pthread_join(t, NULL), 0);
        pirn_lock_thread();
        CHECK_EQ(gettid(), runner);
        pirn_unlock_thread();
        pirn_yield();
        if (i % 2 == 0)
            CHECK_EQ(pthread_join(t, NULL), 0);
    }
    return 8;
}

TEST_ATTR(main_beside_another_run, PROCS)
{
    pid_t me = gettid();
    CHECK_EQ(pirn_run(main_locks_beside, &me), 8);
}
