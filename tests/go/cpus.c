/* SPDX-License-Identifier: MIT */
/*
 * The number of Ps follows the CPUs that the process may use, unless somebody has said how many there
 * are to be (conformance 47; what is read, and quotas, in unit/cpu.c). The runtime looks once a second,
 * while goroutines run.
 */
#include <dirent.h>
#include <pirn.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "harness.h"

#define LONG (20 * PIRN_SEC) /* a bounded wait: far more than it can take */
#define TWO_LOOKS (2300 * PIRN_MS)

static cpu_set_t all, one;

/* All threads of the process, so that those that it makes later have the same. */
static void allow(const cpu_set_t *cpus)
{
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir));) {
        int tid = atoi(e->d_name);
        if (tid && sched_setaffinity(tid, sizeof *cpus, cpus) && errno != ESRCH)
            SKIP("sched_setaffinity is not permitted");
    }
    closedir(dir);
}

static void find_cpus(void)
{
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2)
        SKIP("it takes two CPUs");
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    }
}

/* The thread's own sleep: its P runs, so that the runtime looks. */
static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void wait_for_procs(int n)
{
    for (pirn_ns until = pirn_now() + LONG; pirn_procs(0) != n; nap())
        CHECK_LT(pirn_now(), until);
}

static void stays(int n)
{
    for (pirn_ns until = pirn_now() + TWO_LOOKS; pirn_now() < until; nap())
        CHECK_EQ(pirn_procs(0), n);
}

static int follow(void *arg)
{
    (void)arg;
    int before = pirn_procs(0);
    if (before < 2)
        SKIP("a quota leaves one CPU");
    CHECK_LE(before, CPU_COUNT(&all));
    allow(&one);
    wait_for_procs(1);
    allow(&all);
    wait_for_procs(before);
    return 0;
}

TEST(procs_follow_the_cpus)
{
    find_cpus();
    unsetenv("PIRN_PROCS");
    CHECK_EQ(pirn_run(follow, NULL), 0);
    allow(&all);
}

/* --- somebody has said how many ------------------------------------------------------------------------ */

static int say_how_many(void *arg)
{
    (void)arg;
    allow(&one);
    wait_for_procs(1); /* it follows until then */
    CHECK_EQ(pirn_procs(3), 1);
    allow(&all);
    stays(3);
    return 0;
}

TEST(a_call_stops_it)
{
    find_cpus();
    unsetenv("PIRN_PROCS");
    CHECK_EQ(pirn_run(say_how_many, NULL), 0);
    allow(&all);
}

static int stay_three(void *arg)
{
    (void)arg;
    allow(&one);
    stays(3);
    return 0;
}

TEST(not_if_configured)
{
    find_cpus();
    unsetenv("PIRN_PROCS");
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 3}, stay_three, NULL), 0);
    allow(&all);
}

TEST(not_if_in_the_environment)
{
    find_cpus();
    setenv("PIRN_PROCS", "3", 1);
    CHECK_EQ(pirn_run(stay_three, NULL), 0);
    allow(&all);
}
