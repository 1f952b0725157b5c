/* SPDX-License-Identifier: MIT */
/*
 * Threads that were needed for a while end when they have slept for long (10 s, or as
 * PIRN_DEBUG=idle says), but for one for each P; when they are needed again, others are made.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "go/busy.h"

#define MANY 40
#define WAIT (60 * PIRN_SEC)
#define SOON PROCS, .env = "PIRN_DEBUG=idle=600", .timeout = 150

static atomic_int inside, leave_now;

static void *waits(void *arg)
{
    atomic_fetch_add(&inside, 1);
    while (!atomic_load(&leave_now))
        plain_sleep(PIRN_MS);
    return arg;
}

static void *sleeps_plainly(void *arg)
{
    plain_sleep(100 * PIRN_MS);
    return arg;
}

static void blocks(void)
{
    pirn_blocking(waits, NULL);
}

static int threads_of_the_process(void)
{
    char line[128];
    int n = 0;
    FILE *f = fopen("/proc/self/status", "re");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f)) {
        if (!strncmp(line, "Threads:", 8))
            n = atoi(line + 8);
    }
    fclose(f);
    CHECK_GT(n, 0);
    return n;
}

/* So many threads at once; then they have nothing to do. */
static void need_many(void)
{
    pirn_wg wg = {0};
    atomic_store(&inside, 0);
    atomic_store(&leave_now, 0);
    for (int i = 0; i < MANY; i++)
        pirn_wg_go(&wg, blocks);
    SLEEP_UNTIL(atomic_load(&inside) == MANY);
    CHECK_GT(metrics().threads, MANY);
    CHECK_GT(threads_of_the_process(), MANY);
    atomic_store(&leave_now, 1);
    pirn_wg_wait(&wg);
}

/* Threads that run, beside those that may sleep for ever. */
static int left(void)
{
    return (int)metrics().threads - pirn_procs(0);
}

static void they_end(void)
{
    pirn_ns from = pirn_now();
    while (left() > 1) {
        CHECK_LT(pirn_now(), from + WAIT);
        pirn_sleep(20 * PIRN_MS);
    }
    for (int i = 0; threads_of_the_process() > (int)metrics().threads + 4; i++) { /* joined, too */
        CHECK_LT(i, 1000);
        pirn_sleep(PIRN_MS);
    }
    CHECK_GE(metrics().threads, pirn_procs(0) < MANY ? pirn_procs(0) : MANY);
}

TEST_RUN_ATTR(end_and_come_again, SOON)
{
    for (int i = 0; i < 2; i++) {
        need_many();
        they_end();
    }
    need_many();
}

/* Nobody does anything meanwhile: the runtime does not wake for it all the time, but it does. */
TEST_RUN_ATTR(end_while_all_sleep, SOON)
{
    need_many();
    CHECK_EQ(pirn_sleep(2 * PIRN_SEC), 0);
    CHECK_LT(metrics().threads, MANY);
}

/* One thread sleeps in the poller, another until the next timer is due; that it can't end is no reason for
 * the others to stay, however long it has slept. */
static int never[2];

static void reads(void)
{
    char c;
    CHECK_EQ(pirn_read(never[0], &c, 1), 1);
}

static void sleeps_long(void)
{
    pirn_sleep(3600 * PIRN_SEC);
}

static void end_beside(void (*fn)(void))
{
    pirn_go(fn);
    need_many();
    /* A sleep of pirn's would wake the one that is not to be woken. */
    for (pirn_ns from = pirn_now(); left() > 3;) {
        CHECK_LT(pirn_now(), from + WAIT);
        pirn_blocking(sleeps_plainly, NULL);
    }
}

TEST_RUN_ATTR(end_beside_a_poller, SOON)
{
    CHECK_EQ(pipe(never), 0);
    end_beside(reads);
    CHECK_EQ(write(never[1], "x", 1), 1);
}

TEST_RUN_ATTR(end_beside_a_timer, SOON)
{
    end_beside(sleeps_long);
}

/* Those that locked goroutines sleep on stay. */
static pirn_chan(int) turn;

static void stays(void)
{
    pirn_lock_thread();
    pid_t tid = gettid();
    for (int got; pirn_chan_recv(turn, &got);)
        CHECK_EQ(gettid(), tid);
    pirn_unlock_thread();
}

TEST_RUN_ATTR(locked_ones_stay, SOON)
{
    pirn_wg wg = {0};
    turn = pirn_chan_make(int, 0);
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, stays);
    need_many();
    pirn_ns from = pirn_now();
    while (left() > 8 + 1) {
        CHECK_LT(pirn_now(), from + WAIT);
        pirn_sleep(20 * PIRN_MS);
    }
    for (int i = 0; i < 64; i++)
        pirn_chan_send(turn, i);
    pirn_chan_close(turn);
    pirn_wg_wait(&wg);
    pirn_chan_release(turn);
}

/* As users get it: not within seconds. */
TEST_RUN_ATTR(stay_for_a_while, PROCS)
{
    need_many();
    CHECK_EQ(pirn_sleep(300 * PIRN_MS), 0);
    CHECK_GE(metrics().threads, MANY);
}

/* One ends that was just about to sleep until a timer is due: another does that in its place. The time after
 * which threads end is so short that each look of sysmon finds some. */
static void *blocks_shortly(void *arg)
{
    plain_sleep(PIRN_MS);
    return arg;
}

TEST_RUN_ATTR(timers_while_they_end, PROCS, .env = "PIRN_DEBUG=idle=1", .timeout = 60)
{
    CHECK_EQ(pipe(never), 0);
    pirn_go(reads);
    for (int i = 0; i < 100; i++) {
        pirn_blocking(blocks_shortly, NULL); /* meanwhile another thread sleeps in the poller */
        CHECK_EQ(pirn_sleep(i % 7 * PIRN_MS), 0);
    }
    CHECK_EQ(write(never[1], "x", 1), 1);
}

/* --- destructors of the program's, which run when a thread ends ------------------------------- */

static sem_t may_end;
static pthread_key_t with_destructor;

static void waits_to_end(void *arg)
{
    (void)arg;
    CHECK_EQ(sem_wait(&may_end), 0);
    sem_post(&may_end);
}

static void make_destructor(void)
{
    CHECK_EQ(sem_init(&may_end, 0, 0), 0);
    CHECK_EQ(pthread_key_create(&with_destructor, waits_to_end), 0);
}

static void ends_with_its_thread(void)
{
    pirn_lock_thread();
    CHECK_EQ(pthread_setspecific(with_destructor, &may_end), 0);
}

/* One waits for what a goroutine does, and threads must be made for that meanwhile. */
TEST_RUN_ATTR(destructor_waits, PROCS, .timeout = 60)
{
    uint64_t before = metrics().threads;
    pirn_wg wg = {0};
    make_destructor();
    pirn_wg_go(&wg, ends_with_its_thread);
    pirn_wg_wait(&wg);
    atomic_store(&inside, 0);
    atomic_store(&leave_now, 0);
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, blocks);
    SLEEP_UNTIL(atomic_load(&inside) == 8);
    CHECK_GT(metrics().threads, before);
    sem_post(&may_end);
    atomic_store(&leave_now, 1);
    pirn_wg_wait(&wg);
}

static int leaves_a_destructor(void *arg)
{
    (void)arg;
    return pthread_setspecific(with_destructor, &may_end);
}

/* The end of the runtime does not wait for it for ever. */
TEST_ATTR(destructor_outlives_the_runtime, PROCS, .once = true, .timeout = 60)
{
    pirn_config config = {.stop_grace = 20 * PIRN_MS};
    make_destructor();
    CHECK_EQ(pirn_run_config(&config, leaves_a_destructor, NULL), 0);
    sem_post(&may_end);
}
