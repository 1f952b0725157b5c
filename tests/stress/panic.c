/* SPDX-License-Identifier: MIT */
/*
 * A thousand goroutines that panic and recover all the time: in their own frames and in deferred calls, by
 * mistakes and on purpose, with waits in between, while others end. Nothing is lost, nothing is left behind.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "stress/recount.h"

#define GOROUTINES (TEST_TSAN ? 200 : 1000)

static atomic_long raised, caught, recovered, deferred, balance;
static pirn_ns until;

static void is_left(void)
{
    atomic_fetch_sub(&balance, 1);
    atomic_fetch_add(&deferred, 1);
}

static void recovers(void)
{
    if (pirn_recover())
        atomic_fetch_add(&recovered, 1);
}

static void again(const char *text)
{
    atomic_fetch_add(&raised, 1);
    pirn_panic("%s, again", text);
}

static __attribute__((noinline)) void down(int n, int how)
{
    atomic_fetch_add(&balance, 1);
    pirn_defer(is_left);
    if (n % 3 == 0)
        pirn_yield();
    if (n > 0) {
        down(n - 1, how);
        return;
    }
    if (how & 4)
        return;
    atomic_fetch_add(&raised, 1);
    if (how & 8) {
        pirn_wg wg = {0};
        pirn_wg_done(&wg);
    }
    pirn_panic("at the bottom of %d", how);
}

static void attempt(void *arg)
{
    int how = *(int *)arg;
    if (how & 1) {
        pirn_defer(recovers);
        down(how % 7, how);
    } else if (how & 2) {
        pirn_defer(again, "deferred");
        down(how % 5, how);
    } else {
        down(how % 11, how);
    }
}

static void ends(int how)
{
    pirn_defer(is_left);
    atomic_fetch_add(&balance, 1);
    if (how & 1)
        pirn_exit();
    pirn_defer(recovers);
    atomic_fetch_add(&raised, 1);
    pirn_panic("quietly");
}

static void worker(int id)
{
    pirn_wg wg = {0};
    for (int i = 0; pirn_now() < until || i == 0; i++) {
        int how = (int)((unsigned)id * 7 + (unsigned)i);
        pirn_panic_info *p = pirn_try(attempt, &how);
        if (p) {
            CHECK(strlen(pirn_panic_message(p)) > 5);
            atomic_fetch_add(&caught, 1);
            pirn_panic_free(p);
        }
        if (how % 16 == 0)
            pirn_wg_go(&wg, ends, how / 16);
        if (how % 8 == 0)
            pirn_sleep(50 * PIRN_US);
    }
    pirn_wg_wait(&wg);
}

TEST_RUN_ATTR(panics, .procs = "1,2,4,16", .timeout = 120)
{
    pirn_wg wg = {0};
    until = pirn_now() + (stress_long() ? stress_ns(0) : stress_ns(2) / 4);
    for (int i = 0; i < GOROUTINES; i++)
        pirn_wg_go(&wg, worker, i);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&balance), 0);
    CHECK_GE(atomic_load(&deferred), GOROUTINES);
    CHECK_GT(atomic_load(&recovered), 0);
    CHECK_GT(atomic_load(&caught), 0);
    CHECK_LE(atomic_load(&caught) + atomic_load(&recovered), atomic_load(&raised));
    CHECK_EQ(pirn_num_goroutines(), 1);
}
