/* SPDX-License-Identifier: MIT */
/*
 * No deadlock is reported while a thread of the program's own can still wake somebody: it sleeps,
 * and then calls pirn_wg_done. The detector looks after 10, 50, 210 ms.
 */
#include <sys/stat.h>

#include "stress/recount.h"

#define ROUNDS 50

static pirn_wg round_over;

static int64_t nap(struct rand *r, int i)
{
    return i % 10 == 0 || stress_long() ? 300 * PIRN_MS : rand_below(r, 60000) * PIRN_US;
}

static void *wake_later(void *arg)
{
    sleep_ns(*(int64_t *)arg);
    pirn_wg_done(&round_over);
    return NULL;
}

/* One thread for each round, or one after the other has ended. */
static int wait_for_threads(void *arg)
{
    struct rand r;
    (void)arg;
    rand_seed(&r, stress_seed());
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t t;
        int64_t ns = nap(&r, i);
        pirn_wg_add(&round_over, 1);
        CHECK_EQ(pthread_create(&t, NULL, wake_later, &ns), 0);
        pirn_wg_wait(&round_over);
        CHECK_EQ(pthread_join(t, NULL), 0);
    }
    return 9;
}

TEST_ATTR(a_thread_wakes_main, .procs = "1,2,4,16", .timeout = 60)
{
    CHECK_EQ(pirn_run(wait_for_threads, NULL), 9);
}

static void wait_for_round(pirn_wg *wg)
{
    pirn_wg_wait(wg);
}

/* The runtime is a guest and was asked to report: main is the thread that wakes. */
TEST_ATTR(main_wakes_a_goroutine, .procs = "1,2,4,16", .timeout = 60)
{
    struct rand r;
    rand_seed(&r, stress_seed());
    CHECK_EQ(pirn_start(&(pirn_config){.flags = PIRN_F_DEADLOCK}), 0);
    for (int i = 0; i < ROUNDS; i++) {
        pirn_wg done = {0};
        pirn_wg_add(&round_over, 1);
        pirn_wg_go(&done, wait_for_round, &round_over);
        sleep_ns(nap(&r, i));
        pirn_wg_done(&round_over);
        pirn_wg_wait(&done);
    }
    CHECK_EQ(pirn_stop(), 0);
}

/* A thread that waits in pirn is woken by one that does not, and wakes main. */
static pirn_wg chain;

static void *pass_on(void *arg)
{
    (void)arg;
    pirn_wg_wait(&chain);
    pirn_wg_done(&round_over);
    return NULL;
}

static void *wake_chain(void *arg)
{
    sleep_ns(*(int64_t *)arg);
    pirn_wg_done(&chain);
    return NULL;
}

static int wait_for_chain(void *arg)
{
    struct rand r;
    (void)arg;
    rand_seed(&r, stress_seed());
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t a, b;
        int64_t ns = nap(&r, i) / 2;
        pirn_wg_add(&round_over, 1);
        pirn_wg_add(&chain, 1);
        CHECK_EQ(pthread_create(&a, NULL, pass_on, NULL), 0);
        CHECK_EQ(pthread_create(&b, NULL, wake_chain, &ns), 0);
        pirn_wg_wait(&round_over);
        CHECK_EQ(pthread_join(a, NULL), 0);
        CHECK_EQ(pthread_join(b, NULL), 0);
    }
    return 9;
}

TEST_ATTR(a_parked_thread_wakes_main, .procs = "1,2,4,16", .timeout = 60)
{
    CHECK_EQ(pirn_run(wait_for_chain, NULL), 9);
}

/* Threads are counted through /proc, which not every place has. */
TEST_ATTR(without_proc, .timeout = 20)
{
    char dir[] = P_tmpdir "/noproc.XXXXXX";
    if (TEST_ASAN) {
        SKIP("LeakSanitizer itself needs /proc");
    }
    CHECK(mkdtemp(dir) != NULL);
    if (chroot(dir) || chdir("/")) {
        rmdir(dir);
        SKIP("chroot is not allowed");
    }
    CHECK_EQ(pirn_run(wait_for_threads, NULL), 9);
}
