/* SPDX-License-Identifier: MIT */
/* Locked goroutines at work with each other, with blocking calls, loops and new threads (57, 60 to 62). */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "go/busy.h"

static pirn_wg all;
static atomic_int count;

/* --- with each other -------------------------------------------------------------------------- */

#define RING 8
static pirn_chan(int) chans[RING];

/* Each passes on what it gets, until it is told to end. */
static void passes_on(int i)
{
    int v;
    pirn_lock_thread();
    pid_t tid = gettid();
    while (pirn_chan_recv(chans[i], &v)) {
        CHECK_EQ(gettid(), tid);
        CHECK_EQ(v % RING, i);
        atomic_fetch_add(&count, 1);
        if (i + 1 < RING || v < 1000 * RING / (TEST_TSAN ? 10 : 1))
            pirn_chan_send(chans[(i + 1) % RING], v + 1);
        else
            for (int k = 0; k < RING; k++)
                pirn_chan_close(chans[k]);
    }
    CHECK_EQ(gettid(), tid);
    pirn_unlock_thread();
}

static void run_ring(int cap)
{
    atomic_store(&count, 0);
    for (int i = 0; i < RING; i++)
        chans[i] = pirn_chan_make(int, cap);
    for (int i = 0; i < RING; i++)
        pirn_wg_go(&all, passes_on, i);
    pirn_chan_send(chans[0], 0);
    pirn_wg_wait(&all);
    CHECK_GE(atomic_load(&count), 1000 * RING / (TEST_TSAN ? 10 : 1));
    for (int i = 0; i < RING; i++)
        pirn_chan_release(chans[i]);
}

TEST_RUN_ATTR(ring, PROCS, .timeout = 60)
{
    run_ring(0);
    run_ring(1);
}

/* Two who lock at once, while the number of Ps changes (61). */
static void locks_at_once(void)
{
    for (int i = 0; i < 20; i++) {
        pirn_lock_thread();
        pid_t tid = gettid();
        pirn_yield();
        CHECK_EQ(gettid(), tid);
        pirn_unlock_thread();
    }
}

TEST_RUN_ATTR(lock_while_procs_change, PROCS, .timeout = 60)
{
    for (int i = 0; i < (TEST_TSAN ? 20 : 100); i++) {
        pirn_wg_go(&all, locks_at_once);
        pirn_wg_go(&all, locks_at_once);
        pirn_procs(1 + i % 5);
        pirn_wg_wait(&all);
    }
}

/* --- with blocking calls ---------------------------------------------------------------------- */

static int fds[2];
static atomic_int entered;

static void *reads(void *arg)
{
    char byte;
    atomic_fetch_add(&entered, 1);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    *(pid_t *)arg = gettid();
    return arg;
}

/* Said beforehand, said around, and not said at all. */
static void blocks_locked(int how)
{
    pid_t inside = 0;
    pirn_lock_thread();
    pid_t tid = gettid();
    if (how == 0) {
        CHECK(pirn_blocking(reads, &inside) == &inside);
    } else if (how == 1) {
        pirn_blocking_begin();
        reads(&inside);
        pirn_blocking_end();
    } else {
        reads(&inside);
    }
    CHECK_EQ(inside, tid);
    CHECK_EQ(gettid(), tid);
    pirn_yield();
    CHECK_EQ(gettid(), tid);
    pirn_unlock_thread();
}

TEST_RUN_ATTR(blocking_calls, PROCS, .timeout = 60)
{
    int n = 3 * pirn_procs(0);
    for (int round = 0; round < 5; round++) {
        uint64_t before = retaken();
        CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
        atomic_store(&entered, 0);
        for (int i = 0; i < n; i++)
            pirn_wg_go(&all, blocks_locked, i % 3);
        YIELD_UNTIL(atomic_load(&entered) == n);
        CHECK_GT(retaken(), before);
        for (int i = 0; i < n; i++)
            CHECK_EQ(write(fds[1], "x", 1), 1);
        pirn_wg_wait(&all);
        close(fds[0]);
        close(fds[1]);
    }
}

/* --- in loops --------------------------------------------------------------------------------- */

static void loops_locked(void)
{
    pirn_lock_thread();
    pid_t tid = gettid();
    for (int i = 0; !atomic_load(&stop_loops); i++) {
        compute_for(15 * PIRN_MS);
        CHECK_EQ(gettid(), tid);
        if (i % 2)
            pirn_yield();
        CHECK_EQ(gettid(), tid);
    }
    pirn_unlock_thread();
}

TEST_RUN_ATTR(preempted_in_a_loop, PROCS, .timeout = 60)
{
    needs_preemption();
    atomic_store(&stop_loops, 0);
    for (int i = 0; i < 2 * pirn_procs(0); i++)
        pirn_wg_go(&looping, loops_locked);
    await_preempted(20);
    end_loops();
}

/* --- what it did to its thread stays there (60) ----------------------------------------------- */

/* One that runs goroutines, and is not just being born. */
static bool blocks_usr1(const char *tid)
{
    char path[300], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false; /* it has ended */
    bool runs = false;
    while (fgets(line, sizeof line, f)) {
        runs |= !strncmp(line, "Name:\tpirn-m", 12);
        sscanf(line, "SigBlk: %llx", &mask);
    }
    fclose(f);
    return runs && mask >> (SIGUSR1 - 1) & 1;
}

static int threads_that_block_usr1(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.' && blocks_usr1(e->d_name);
    closedir(dir);
    return n;
}

static void *rests(void *arg)
{
    atomic_fetch_add(&count, 1);
    while (!atomic_load(&stop_loops))
        plain_sleep(PIRN_MS);
    return arg;
}

static void rests_blocking(void)
{
    pirn_blocking(rests, NULL);
}

TEST_RUN_ATTR(new_threads_are_clean, PROCS, .timeout = 60)
{
    sigset_t usr1;
    uint64_t threads = metrics().threads;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pirn_lock_thread();
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0);
    for (int i = 0; i < 20; i++)
        pirn_wg_go(&all,
                   rests_blocking); /* each needs a thread; this one sees to it that it runs */
    YIELD_UNTIL(atomic_load(&count) == 20);
    CHECK_GE(metrics().threads, threads + 10);
    YIELD_UNTIL(threads_that_block_usr1() == 0); /* this one is on the thread of pirn_run */
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &usr1, NULL), 0);
    pirn_unlock_thread();
    atomic_store(&stop_loops, 1);
    pirn_wg_wait(&all);
}

/* 1000 threads that come and go with their goroutines, and use what the kernel has for each (62). */
static void comes_and_goes(void)
{
    char name[16] = "";
    pirn_lock_thread();
    CHECK_EQ(pthread_setname_np(pthread_self(), "locked"), 0);
    pirn_yield();
    CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof name), 0);
    CHECK_STR(name, "locked");
    free(malloc(100));
}

TEST_RUN_ATTR(threads_come_and_go, PROCS, .timeout = 60)
{
    for (int i = 0; i < (TEST_TSAN ? 10 : 100); i++) {
        for (int k = 0; k < 10; k++)
            pirn_wg_go(&all, comes_and_goes);
        pirn_wg_wait(&all);
    }
    SLEEP_UNTIL(metrics().threads <= metrics().procs + 16);
}

/* --- two of which one is locked, and who waits for their P ----------------------------------------- */

static pirn_chan(int) there, back;
static atomic_int third_has_run;

static void answers_locked(void)
{
    int n;
    pirn_lock_thread();
    while (pirn_chan_recv(there, &n))
        pirn_chan_send(back, n);
    pirn_unlock_thread();
}

static void asks_until_third_has_run(void)
{
    for (pirn_ns until = pirn_now() + LONG; !atomic_load(&third_has_run);) {
        CHECK_LT(pirn_now(), until);
        pirn_chan_send(there, 1);
        CHECK_EQ(pirn_chan_get(back), 1);
    }
    pirn_chan_close(there);
}

static void runs_third(void)
{
    atomic_store(&third_has_run, 1);
}

/* They give the P to each other's threads again and again: no new slice for that. */
TEST_RUN_ATTR(pair_does_not_starve_a_third, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    there = pirn_chan_make(int, 0);
    back = pirn_chan_make(int, 0);
    for (int i = 0; i < 20; i++) {
        atomic_store(&third_has_run, 0);
        pirn_wg_go(&wg, answers_locked);
        pirn_yield();
        pirn_wg_go(&wg, runs_third);
        pirn_wg_go(&wg, asks_until_third_has_run); /* the last one runs first */
        pirn_wg_wait(&wg);
        pirn_chan_release(there);
        there = pirn_chan_make(int, 0);
    }
    pirn_chan_release(there);
    pirn_chan_release(back);
}
