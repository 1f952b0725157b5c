/* SPDX-License-Identifier: MIT */
/* Wait groups (conformance 105, R9 of the design). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "harness.h"
#include "pirn.h"

#define PROCS .procs = "1,2,4,16"
#define FEW (TEST_TSAN ? 50 : 1) /* a new goroutine takes ThreadSanitizer a millisecond */

static at_u32 arrived;

static void arrive(pirn_wg *barrier)
{
    for (uint32_t i = 0; i < 10; i++)
        pirn_yield();
    at_add(&arrived, 1, RELAXED);
    pirn_wg_done(barrier);
}

/* The wait does not return before the last done; a group can be used again at once. */
TEST_RUN_ATTR(barrier, PROCS)
{
    pirn_wg wg = {0};
    for (uint32_t round = 1; round <= 200 / FEW; round++) {
        pirn_wg_add(&wg, 16);
        for (int i = 0; i < 16; i++)
            pirn_go(arrive, &wg);
        pirn_wg_wait(&wg);
        CHECK_EQ(at_load(&arrived, RELAXED), 16 * round);
        pirn_wg_wait(&wg); /* at zero: returns */
    }
    CHECK_EQ(wg.state_, 0);
    CHECK_EQ(wg.waiters_, NULL);
}

static void plain(uint64_t *cell, uint64_t v)
{
    *cell = v;
}

/* What was done before the done is seen after the wait: plain memory. */
TEST_RUN_ATTR(go_helper, PROCS)
{
    static uint64_t cells[100];
    pirn_wg wg = {0};
    for (uint64_t round = 1; round <= 200 / FEW; round++) {
        for (int i = 0; i < 100; i++)
            pirn_wg_go(&wg, plain, &cells[i], round);
        pirn_wg_wait(&wg);
        for (int i = 0; i < 100; i++)
            CHECK_EQ(cells[i], round);
    }
}

static void exits(void)
{
    pirn_exit();
}

TEST_RUN(exit_counts_as_done)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 100; i++)
        pirn_wg_go(&wg, exits);
    pirn_wg_wait(&wg);
}

/* --- many waiters --------------------------------------------------------------------------------------- */

static pirn_wg gate, through;
static at_u32 passed, opened;

static void wait_at_gate(void)
{
    at_add(&arrived, 1, RELAXED);
    pirn_wg_wait(&gate);
    CHECK(at_load(&opened, RELAXED));
    at_add(&passed, 1, RELAXED);
}

static void yield_until(at_u32 *counter, uint32_t n)
{
    for (pirn_ns until = pirn_now() + 30 * PIRN_SEC; at_load(counter, RELAXED) < n;) {
        CHECK_LT(pirn_now(), until);
        pirn_yield();
    }
}

static void many_waiters(uint32_t n)
{
    at_store(&arrived, 0, RELAXED);
    at_store(&passed, 0, RELAXED);
    at_store(&opened, 0, RELAXED);
    pirn_wg_add(&gate, 2);
    for (uint32_t i = 0; i < n; i++)
        pirn_wg_go(&through, wait_at_gate);
    yield_until(&arrived, n);
    CHECK_EQ(at_load(&passed, RELAXED), 0);
    pirn_wg_done(&gate);
    for (int i = 0; i < 100; i++)
        pirn_yield();
    CHECK_EQ(at_load(&passed, RELAXED), 0);
    at_store(&opened, 1, RELAXED);
    pirn_wg_done(&gate);
    pirn_wg_wait(&through);
    CHECK_EQ(at_load(&passed, RELAXED), n);
}

TEST_RUN_ATTR(waiters, PROCS)
{
    static const uint32_t numbers[] = {1, 2, 3, 100, 255, 256, 257, 258, 600, 5000};
    for (int round = 0; round < (TEST_TSAN ? 1 : 2); round++)
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] - 2 * TEST_TSAN; i++)
            many_waiters(numbers[i]);
}

/* --- threads of the program's own ------------------------------------------------------------------------ */

static void *foreign_waits(void *arg)
{
    at_add(&arrived, 1, RELAXED);
    pirn_wg_wait(&gate);
    CHECK(at_load(&opened, RELAXED));
    pirn_wg_done(arg);
    return NULL;
}

static void open_gate(void)
{
    at_store(&opened, 1, RELAXED);
    pirn_wg_done(&gate);
}

/* Threads and goroutines wait on the same group; a goroutine, or a thread, releases them. */
TEST_ATTR(foreign_waiters, PROCS)
{
    CHECK_EQ(pirn_start(NULL), 0);
    for (int round = 0; round < 20 / FEW + 1; round++) {
        pthread_t t[8];
        pirn_wg over = {0};
        at_store(&arrived, 0, RELAXED);
        at_store(&opened, 0, RELAXED);
        pirn_wg_add(&gate, 1);
        pirn_wg_add(&over, 8);
        for (int i = 0; i < 8; i++) {
            CHECK_EQ(pthread_create(&t[i], NULL, foreign_waits, &over), 0);
            pirn_wg_go(&through, wait_at_gate);
        }
        while (at_load(&arrived, RELAXED) < 16)
            sched_yield();
        if (round % 2)
            open_gate();
        else
            pirn_go(open_gate);
        pirn_wg_wait(&through);
        pirn_wg_wait(&over);
        for (int i = 0; i < 8; i++)
            pthread_join(t[i], NULL);
    }
    CHECK_EQ(pirn_stop(), 0);
}

/* --- races ------------------------------------------------------------------------------------------------ */

static void done_one(pirn_wg *wg)
{
    pirn_wg_done(wg);
}

/* The done comes before, during or after the wait: it is never lost. */
TEST_RUN_ATTR(done_against_wait, PROCS)
{
    static pirn_wg wgs[2];
    for (int i = 0; i < 100000 / FEW; i++) {
        pirn_wg *wg = &wgs[i & 1];
        pirn_wg_add(wg, 1);
        pirn_go(done_one, wg);
        if (i % 3 == 0)
            pirn_yield();
        pirn_wg_wait(wg);
        CHECK_EQ(wg->state_, 0);
    }
}

#define RACERS 4
static pirn_wg lap[3], finish;

/* All meet at each lap: add, done and wait on one group from several sides at once. */
static void race(int laps)
{
    for (int i = 0; i < laps; i++) {
        pirn_wg_done(&lap[i % 3]);
        pirn_wg_wait(&lap[i % 3]);
        CHECK_GE(at_add(&passed, 1, RELAXED) + 1, (uint32_t)(i * RACERS) + 1);
        if (i % RACERS == 0)
            pirn_yield();
        /* Everybody has left lap i - 1, or there would be no lap i + 1: one sets up i + 2. */
        if (at_add(&arrived, 1, RELAXED) % RACERS == 0)
            pirn_wg_add(&lap[(i + 2) % 3], RACERS);
    }
}

TEST_RUN_ATTR(laps, PROCS)
{
    int laps = 25000 / FEW;
    pirn_wg_add(&lap[0], RACERS);
    pirn_wg_add(&lap[1], RACERS);
    for (int i = 0; i < RACERS; i++)
        pirn_wg_go(&finish, race, laps);
    pirn_wg_wait(&finish);
    CHECK_EQ(at_load(&passed, RELAXED), (uint32_t)(RACERS * laps));
}

/* --- an object that is gone as soon as it may be (R9) ------------------------------------------------------- */

struct shared {
    pirn_wg wg;
    at_u32 refs;
    char scratch[40];
};

static void drop(struct shared *s)
{
    if (at_add(&s->refs, (uint32_t)-1, ACQ_REL) == 1) {
        memset(s, 0x55, sizeof *s);
        free(s);
    }
}

static void wait_and_drop(struct shared *s)
{
    pirn_wg_wait(&s->wg);
    drop(s);
}

static void done_only(struct shared *s)
{
    pirn_wg_done(&s->wg); /* s may be gone before this has returned */
}

/* refs counts the waiters alone: the last of them frees, while a done may still execute. */
TEST_RUN_ATTR(freed_by_the_last_waiter, PROCS)
{
    pirn_wg over = {0};
    for (int i = 0; i < 10000 / FEW; i++) {
        struct shared *s = calloc(1, sizeof *s);
        int waiters = 1 + i % 3, dones = 1 + i % 2;
        at_store(&s->refs, (uint32_t)waiters, RELAXED);
        pirn_wg_add(&s->wg, dones);
        for (int k = 0; k < dones; k++)
            pirn_wg_go(&over, done_only, s);
        for (int k = 1; k < waiters; k++)
            pirn_wg_go(&over, wait_and_drop, s);
        wait_and_drop(s);
        if (i % 64 == 0)
            pirn_wg_wait(&over);
    }
    pirn_wg_wait(&over);
}

static void nothing(void)
{
}

/* The same on the stack of a caller who returns at once. */
static __attribute__((noinline)) void wait_in_frame(void)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, nothing);
    pirn_wg_go(&wg, nothing);
    pirn_wg_wait(&wg);
    memset(&wg, 0x77, sizeof wg);
    __asm__ volatile("" ::"r"(&wg) : "memory");
}

TEST_RUN_ATTR(gone_with_its_frame, PROCS)
{
    for (int i = 0; i < 20000 / FEW; i++)
        wait_in_frame();
}

/* --- misuse -------------------------------------------------------------------------------------------------- */

struct to_run {
    int (*fn)(void *);
};

static void run_and_exit(void *arg)
{
    struct to_run *r = arg;
    _exit(pirn_run_config(&(pirn_config){.procs = 1}, r->fn, NULL) == 0 ? 0 : 99);
}

static int run_child(int (*fn)(void *))
{
    int status = test_in_child(run_and_exit, &(struct to_run){fn});
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void check_panics(int (*fn)(void *), const char *first_line)
{
    CHECK_EQ(run_child(fn), 2);
    char *end = strchr(test_said, '\n');
    CHECK(end != NULL);
    *end = '\0';
    CHECK_STR(test_said, first_line);
}

static int negative(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    pirn_wg_done(&wg);
    return 0;
}

static int negative_by_many(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 3);
    pirn_wg_add(&wg, -4);
    return 0;
}

static int too_many_dones(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    pirn_go(done_one, &wg);
    pirn_go(done_one, &wg);
    while (pirn_num_goroutines() > 1)
        pirn_yield();
    return 0;
}

static void wait_for(pirn_wg *wg)
{
    pirn_wg_wait(wg);
}

static int negative_with_waiters(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    pirn_go(wait_for, &wg);
    for (int i = 0; i < 1000; i++)
        pirn_yield();
    pirn_wg_add(&wg, -2);
    return 0;
}

static int counter_overflow(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    pirn_wg_add(&wg, INT32_MAX);
    pirn_wg_add(&wg, 1);
    return 0;
}

static void done_and_add(pirn_wg *wg)
{
    pirn_wg_done(wg);
    pirn_wg_add(wg, 1); /* before the waiter has come back */
}

static int reused_too_early(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    pirn_go(done_and_add, &wg);
    pirn_wg_wait(&wg);
    return 0;
}

TEST(misuse_panics)
{
    check_panics(negative, "panic: sync: negative WaitGroup counter");
    check_panics(negative_by_many, "panic: sync: negative WaitGroup counter");
    check_panics(too_many_dones, "panic: sync: negative WaitGroup counter");
    check_panics(negative_with_waiters, "panic: sync: negative WaitGroup counter");
    check_panics(counter_overflow, "panic: sync: WaitGroup counter overflow");
    check_panics(reused_too_early,
                 "panic: sync: WaitGroup is reused before previous Wait has returned");
}

static int big_counts(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    pirn_wg_add(&wg, INT32_MAX);
    pirn_wg_add(&wg, -INT32_MAX);
    pirn_wg_wait(&wg);
    pirn_wg_add(&wg, INT32_MAX);
    pirn_wg_add(&wg, 0);
    pirn_wg_add(&wg, -(INT32_MAX - 1));
    pirn_go(done_one, &wg);
    pirn_wg_wait(&wg);
    return 0;
}

TEST(whole_range)
{
    CHECK_EQ(run_child(big_counts), 0);
    CHECK_STR(test_said, "");
}

/* Without a runtime: what does not block works from any thread. */
TEST(without_a_runtime)
{
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 2);
    pirn_wg_done(&wg);
    pirn_wg_done(&wg);
    pirn_wg_wait(&wg);
}
