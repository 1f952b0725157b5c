/* SPDX-License-Identifier: MIT */
/*
 * What goes to every thread of the process, those of pirn too: changes of identity, which libc does with a
 * signal of its own on each thread (conformance 151), and the profiler's signal (150: SIGPROF).
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#include "go/busy.h"

/* Threads that compute, are stopped, block, sleep, come and go. */
static pirn_wg others;

static void blocks(void)
{
    while (!atomic_load(&stop_loops))
        plain_sleep(PIRN_MS);
}

static void parks(void)
{
    while (!atomic_load(&stop_loops))
        pirn_sleep(PIRN_MS);
}

static void ends_its_thread(void)
{
    pirn_lock_thread();
}

static void ends_threads(void)
{
    while (!atomic_load(&stop_loops)) {
        pirn_wg wg = {0};
        pirn_wg_go(&wg, ends_its_thread);
        pirn_wg_wait(&wg);
    }
}

static void start_others(void)
{
    start_loops(TEST_TSAN ? 0 : pirn_procs(0) + 1);
    for (int i = 0; i < 3; i++)
        pirn_wg_go(&others, blocks);
    pirn_wg_go(&others, parks);
    pirn_wg_go(&others, ends_threads);
}

static void end_others(void)
{
    end_loops();
    pirn_wg_wait(&others);
}

/* --- identity ----------------------------------------------------------------------------------- */

static void changes(int n)
{
    for (int i = 0; i < n; i++) {
        gid_t gid = getgid();
        CHECK_EQ(setresgid(gid, getegid(), gid), 0);
        CHECK_EQ(setgid(gid), 0);
        pirn_yield();
    }
}

TEST_RUN_ATTR(identity, PROCS, .timeout = 90)
{
    pirn_wg wg = {0};
    start_others();
    if (!TEST_TSAN)
        await_preempted(2);
    for (int i = 0; i < 4; i++) /* each waits until every thread that computes has had a CPU */
        pirn_wg_go(&wg, changes, 2 + 40 / pirn_procs(0));
    pirn_wg_wait(&wg);
    end_others();
}

/* --- the profiler ------------------------------------------------------------------------------- */

static atomic_ulong samples;

static void takes_a_sample(int sig)
{
    (void)sig;
    atomic_fetch_add(&samples, 1);
}

static void *computes(void *arg)
{
    for (pirn_ns until = plain_now() + 300 * PIRN_MS; plain_now() < until;) {
    }
    return arg;
}

TEST_RUN_ATTR(profiler, PROCS, .timeout = 90)
{
    needs_preemption();
    pthread_t t;
    struct sigaction sa = {.sa_handler = takes_a_sample, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct itimerval often = {{.tv_usec = 100}, {.tv_usec = 100}}, never = {{0}, {0}};
    CHECK_EQ(sigaction(SIGPROF, &sa, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &often, NULL), 0);
    CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0); /* a thread of the program's own */
    start_others();
    await_preempted(30);
    end_others();
    pthread_join(t, NULL);
    CHECK_EQ(setitimer(ITIMER_PROF, &never, NULL), 0);
    printf("%lu samples\n", atomic_load(&samples));
    CHECK_GT(atomic_load(&samples), 50);
}
