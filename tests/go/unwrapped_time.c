/* SPDX-License-Identifier: MIT */
/* Plain calls that block: how soon the P goes to others, and that no signal of pirn's disturbs them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include "go/busy.h"

/* --- how soon --------------------------------------------------------------------------------- */

#define TRIES 40
#define SOON (20 * PIRN_MS)

static int fds[2];
static _Atomic pirn_ns blocked_at;

static void reads(void)
{
    char byte;
    atomic_store(&blocked_at, plain_now());
    CHECK_EQ(read(fds[0], &byte, 1), 1);
}

static int by_value(const void *a, const void *b)
{
    pirn_ns x = *(const pirn_ns *)a, y = *(const pirn_ns *)b;
    return x < y ? -1 : x > y;
}

/* From the call to the moment at which main, which was ready, runs. */
static int time_to_run(void *arg)
{
    pirn_ns late[TRIES];
    uint64_t before = retaken();
    (void)arg;
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    for (int i = 0; i < TRIES; i++) {
        pirn_wg wg = {0};
        atomic_store(&blocked_at, 0);
        pirn_wg_go(&wg, reads);
        YIELD_UNTIL(atomic_load(&blocked_at));
        late[i] = plain_now() - atomic_load(&blocked_at);
        CHECK_EQ(write(fds[1], "x", 1), 1);
        pirn_wg_wait(&wg);
        pirn_sleep(i % 4 * 3 * PIRN_MS); /* whoever watches may fall asleep meanwhile */
    }
    qsort(late, TRIES, sizeof late[0], by_value);
    printf("the P was gone after %.2f ms at best, %.2f in the middle, %.2f at worst\n",
           (double)late[0] / 1e6, (double)late[TRIES / 2] / 1e6, (double)late[TRIES - 1] / 1e6);
    CHECK_GE(retaken() - before, TRIES / 2);
    CHECK_LE(late[0], SOON);
    CHECK_LE(late[TRIES / 2], SOON * (TEST_TSAN || TEST_ASAN ? 10 : 1));
    return 0;
}

TEST_ATTR(soon, .alone = true, .timeout = 60)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1}, time_to_run, NULL), 0);
}

/* Nothing was runnable when it blocked: the sleeper's time comes later. */
static int time_to_wake(void *arg)
{
    pirn_ns best = PIRN_NEVER;
    uint64_t before = retaken();
    (void)arg;
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    for (int i = 0; i < 10; i++) {
        pirn_wg wg = {0};
        atomic_store(&blocked_at, 0);
        pirn_wg_go(&wg, reads);
        pirn_ns due = pirn_now() + 30 * PIRN_MS;
        pirn_sleep_until(due);
        pirn_ns late = pirn_now() - due;
        best = late < best ? late : best;
        YIELD_UNTIL(atomic_load(&blocked_at));
        CHECK_EQ(write(fds[1], "x", 1), 1);
        pirn_wg_wait(&wg);
    }
    printf("the sleeper was %.2f ms late at best\n", (double)best / 1e6);
    CHECK_GT(retaken(), before);
    CHECK_LE(best, SOON);
    return 0;
}

TEST_ATTR(soon_for_a_timer, .alone = true, .timeout = 60)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1}, time_to_wake, NULL), 0);
}

/* --- not disturbed ---------------------------------------------------------------------------- */

#define CALLERS 8

static atomic_int calls_made, enough;

/* None of these would have been interrupted without pirn. */
static void calls(int n)
{
    for (int i = 0; i < n || !atomic_load(&enough); i++) {
        struct timespec t = {.tv_nsec = 50000 * (1 + i % 8)};
        if (i % 2)
            CHECK_EQ(poll(NULL, 0, 1), 0);
        else
            CHECK_EQ(nanosleep(&t, NULL), 0);
        atomic_fetch_add(&calls_made, 1);
        for (volatile int k = 0; k < 20000; k++) {
        }
        if (i % 20 == 0)
            pirn_yield();
    }
}

/* Threads that come back without a P compute on until they are told: these are not disturbed either. */
static void computes_between(int n)
{
    for (int i = 0; i < n || !atomic_load(&enough); i++) {
        CHECK_EQ(poll(NULL, 0, 2), 0);
        atomic_fetch_add(&calls_made, 1);
        for (pirn_ns until = plain_now() + 5 * PIRN_MS; plain_now() < until;) {
        }
    }
}

/* So many calls, while loops are stopped and the callers lose their Ps. */
static void undisturbed(void (*fn)(int), int n)
{
    needs_preemption();
    pirn_wg wg = {0};
    uint64_t stops = preempted(), taken = retaken();
    start_loops(pirn_procs(0));
    for (int i = 0; i < CALLERS; i++)
        pirn_wg_go(&wg, fn, n / CALLERS);
    SLEEP_UNTIL(preempted() - stops >= 20 && retaken() - taken >= 20);
    atomic_store(&enough, 1);
    pirn_wg_wait(&wg);
    CHECK_GE(atomic_load(&calls_made), n);
    printf("%d calls, %d preempted, %d retaken\n", atomic_load(&calls_made),
           (int)(preempted() - stops), (int)(retaken() - taken));
    end_loops();
}

TEST_RUN_ATTR(no_eintr, PROCS, .timeout = 120)
{
    undisturbed(calls, long_form() ? 100000 : 2000);
}

TEST_RUN_ATTR(no_eintr_without_p, .slow = true, PROCS, .timeout = 120)
{
    undisturbed(computes_between, long_form() ? 10000 : 400);
}
