/* SPDX-License-Identifier: MIT */
/*
 * An idle program uses no CPU: less than 1 ms in 2 s with 10,000 goroutines parked, once the
 * stacks that were too many have been given back, for which there are 30 s.
 */
#include "stress/recount.h"

#define PARKED (TEST_TSAN ? 2000 : 10000)
#define BURST (TEST_TSAN ? 500 : 2000)

static void wait_at(pirn_wg *gate)
{
    pirn_wg_wait(gate);
}

static void park_many(pirn_wg *gate, pirn_wg *all, int n)
{
    pirn_wg_add(gate, 1);
    for (int i = 0; i < n; i++) {
        pirn_wg_go(all, wait_at, gate);
    }
}

static void burst(void)
{
    pirn_wg gate = {0}, all = {0};
    park_many(&gate, &all, BURST);
    sleep_ns(20 * PIRN_MS);
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
}

static void must_be_idle(const char *when)
{
    int64_t used = 0, until = now_ns() + 30 * PIRN_SEC;
    do {
        int64_t before = process_cpu_ns();
        sleep_ns(2 * PIRN_SEC);
        used = process_cpu_ns() - before;
    } while (used >= PIRN_MS && now_ns() < until);
    printf("%s: %lld us of CPU in 2 s\n", when, (long long)used / 1000);
    if (used >= PIRN_MS) {
        show_state(STDERR_FILENO);
        FAIL("an idle runtime uses CPU");
    }
}

TEST_ATTR(idle_in_the_background, .timeout = 100, .alone = true)
{
    pirn_wg gate = {0}, all = {0};
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 4}), 0);
    must_be_idle("nothing started");
    park_many(&gate, &all, PARKED);
    must_be_idle("parked");
    burst();
    must_be_idle("after a burst");
    recount(PARKED);
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

/* The detector of deadlocks has a thread of the program's own to wait for. */
static pirn_wg finish;

static void *measure(void *arg)
{
    (void)arg;
    must_be_idle("under pirn_run");
    burst();
    must_be_idle("under pirn_run, after a burst");
    pirn_wg_done(&finish);
    return NULL;
}

static int wait_for_measure(void *arg)
{
    static pirn_wg gate, all;
    pthread_t t;
    (void)arg;
    pirn_wg_add(&finish, 1);
    park_many(&gate, &all, PARKED);
    CHECK_EQ(pthread_create(&t, NULL, measure, NULL), 0);
    pirn_wg_wait(&finish);
    CHECK_EQ(pthread_join(t, NULL), 0);
    return 7;
}

TEST_ATTR(idle_with_a_thread, .timeout = 100, .alone = true)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 4}, wait_for_measure, NULL), 7);
}
