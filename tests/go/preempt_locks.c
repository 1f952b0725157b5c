/* SPDX-License-Identifier: MIT */
/*
 * A goroutine changes its thread only in calls that may park (R1): one that holds a lock of the
 * thread's, such as a pthread mutex, may be stopped, may lose its P in a system call, and may call
 * what does not park. An ERRORCHECK mutex knows its owner: unlock by another thread is EPERM.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "go/busy.h"

#define HOLDERS 8

static pirn_chan(int) full;
static pirn_mutex mutex;
static atomic_ulong held;

static void nothing(void)
{
}

/* All of the kinds of calls that don't park. */
static void call_all(void)
{
    pirn_wg wg = {0};
    int v = 0;
    CHECK_EQ(pirn_chan_try_send(full, 1), 0);
    if (pirn_mutex_try_lock(&mutex))
        pirn_mutex_unlock(&mutex);
    pirn_wg_add(&wg, 1);
    pirn_wg_done(&wg);
    pirn_go(nothing);
    CHECK_GT(pirn_id(), 1);
    CHECK_EQ(pirn_chan_len(full), 1);
    CHECK_GT(pirn_now(), 0);
    pirn_chan(int) c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_chan_try_send(c, 7), 1);
    pirn_chan_close(c);
    CHECK_EQ(pirn_chan_try_recv(c, &v), 1);
    CHECK_EQ(v, 7);
    pirn_chan_release(c);
}

/* Over slices that end in its own code and in the calls, and over system calls that block. */
static void hold(pthread_mutex_t *m, int round, bool computes, bool blocks)
{
    CHECK_EQ(pthread_mutex_lock(m), 0);
    pid_t tid = gettid();
    for (int i = 0; i < 10; i++) {
        if (computes)
            compute_for(round % 5 * PIRN_MS / 2);
        call_all();
        if (blocks && i == round % 10)
            plain_sleep(30 * PIRN_MS);
        call_all(); /* the P may be gone */
        CHECK_EQ(gettid(), tid);
    }
    CHECK_EQ(pthread_mutex_unlock(m), 0);
    atomic_fetch_add(&held, 1);
}

static void holds_its_own(int computes, int blocks)
{
    pthread_mutex_t m;
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    CHECK_EQ(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK), 0);
    CHECK_EQ(pthread_mutex_init(&m, &attr), 0);
    for (int round = 0; !atomic_load(&stop_loops); round++) {
        hold(&m, round, computes, blocks);
        pirn_yield();
    }
    CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

/* Until so many have been stopped, and so many Ps retaken. */
static void under(int computes, int blocks, uint64_t stops, uint64_t retakes)
{
    uint64_t stopped = preempted() + stops, taken = retaken() + retakes;
    full = pirn_chan_make(int, 1);
    pirn_chan_send(full, 1);
    for (int i = 0; i < HOLDERS + pirn_procs(0); i++)
        pirn_wg_go(&looping, holds_its_own, computes, blocks);
    SLEEP_UNTIL(preempted() >= stopped && retaken() >= taken && atomic_load(&held) >= 50);
    end_loops();
    pirn_chan_release(full);
}

TEST_RUN_ATTR(held_over_preemption, PROCS, .timeout = 90)
{
    needs_preemption();
    under(1, 0, 30, 0);
}

TEST_RUN_ATTR(held_over_retakes, PROCS, .timeout = 90)
{
    under(0, 1, 0, 30);
}

TEST_RUN_ATTR(held_over_both, .slow = true, PROCS, .timeout = 90)
{
    needs_preemption();
    under(1, 1, 20, 20);
}

/* --- a lock that all want --------------------------------------------------------------------- */

static pthread_mutex_t shared;
static long first, second;

static void wants_it(void)
{
    while (!atomic_load(&stop_loops)) {
        CHECK_EQ(pthread_mutex_lock(&shared), 0);
        CHECK_EQ(first, second);
        first++;
        compute_for(first % 4 ? PIRN_MS : 25 * PIRN_MS); /* the latter is more than a slice */
        call_all();
        second++;
        CHECK_EQ(pthread_mutex_unlock(&shared), 0);
        atomic_fetch_add(&held, 1);
        pirn_yield();
    }
}

/* Those who wait for it block their threads; its holder is stopped while it has it. */
TEST_RUN_ATTR(wanted_by_all, PROCS, .timeout = 90)
{
    needs_preemption();
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    CHECK_EQ(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK), 0);
    CHECK_EQ(pthread_mutex_init(&shared, &attr), 0);
    full = pirn_chan_make(int, 1);
    pirn_chan_send(full, 1);
    start_loops(pirn_procs(0));
    for (int i = 0; i < HOLDERS; i++)
        pirn_wg_go(&looping, wants_it);
    await_preempted(30);
    SLEEP_UNTIL(atomic_load(&held) >= 50 && retaken() > 0);
    printf("held %lu times, %llu preempted, %llu retaken\n", atomic_load(&held),
           (unsigned long long)preempted(), (unsigned long long)retaken());
    end_loops();
    pirn_chan_release(full);
}
