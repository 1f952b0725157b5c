/* SPDX-License-Identifier: MIT */
/*
 * A goroutine sleeps, and all other threads have let go of their Ps: by pirn_blocking, by waiting or ending
 * locked to a thread, or the world was stopped. Somebody keeps the time for it.
 */
#include "go/busy.h"

#define NAP (300 * PIRN_MS) /* far away, as the scheduler sees it */

static atomic_int woke;
static pirn_chan(int) told;

static void naps(void)
{
    pirn_sleep(NAP);
    atomic_store(&woke, 1);
    pirn_chan_send(told, 1);
}

static void start_nap(void)
{
    told = pirn_chan_make(int, 1);
    pirn_go(naps);
    pirn_yield();
}

static void *waits(void *arg)
{
    for (pirn_ns until = plain_now() + 5 * PIRN_SEC; !atomic_load(&woke); plain_sleep(PIRN_MS))
        CHECK_LT(plain_now(), until);
    return arg;
}

TEST_RUN_ATTR(beside_blocking_fn, PROCS)
{
    start_nap();
    pirn_blocking(waits, NULL);
}

TEST_RUN_ATTR(beside_an_announced_call, PROCS)
{
    start_nap();
    pirn_blocking_begin();
    waits(NULL);
    pirn_blocking_end();
}

TEST_RUN_ATTR(beside_a_plain_call, PROCS)
{
    start_nap();
    waits(NULL);
}

TEST_RUN_ATTR(beside_a_locked_one, PROCS)
{
    int got = 0;
    start_nap();
    pirn_lock_thread(); /* main: it goes to the thread of pirn_run */
    pirn_chan_recv(told, &got);
    CHECK_EQ(got, 1);
    pirn_unlock_thread();
}

static void waits_locked(void)
{
    int got = 0;
    pirn_lock_thread();
    pirn_chan_recv(told, &got);
    CHECK_EQ(got, 1);
}

TEST_RUN_ATTR(beside_another_locked_one, PROCS)
{
    pirn_wg wg = {0};
    start_nap();
    pirn_wg_go(&wg, waits_locked);
    pirn_wg_wait(&wg);
}

static void ends_locked(void)
{
    pirn_lock_thread();
}

TEST_RUN_ATTR(beside_the_end_of_a_thread, PROCS)
{
    int got = 0;
    start_nap();
    pirn_go(ends_locked);
    pirn_chan_recv(told, &got);
    CHECK_EQ(got, 1);
}
