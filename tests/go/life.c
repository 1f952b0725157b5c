/* SPDX-License-Identifier: MIT */
/* The life of the runtime: starting, stopping, again and again, with and without other threads. */
#include <dirent.h>
#include <pirn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define SANITIZED (TEST_TSAN || TEST_ASAN || TEST_MSAN)
#define LONG (20 * PIRN_SEC) /* a bounded wait: far more than it can take */

static atomic_int count, flag;

/* From a thread outside pirn. */
#define WAIT_UNTIL(cond)                                                                           \
    for (pirn_ns until_ = pirn_now() + LONG; !(cond);) {                                           \
        CHECK_LT(pirn_now(), until_);                                                              \
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);                                   \
    }

static void add_one(void)
{
    atomic_fetch_add(&count, 1);
}

static int return_arg(void *arg)
{
    return *(int *)arg;
}

/* --- results ---------------------------------------------------------------------------------------- */

TEST(result_of_run)
{
    static const int results[] = {0, 1, -1, 42, INT32_MAX, INT32_MIN, -ENOMEM};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        int r = results[i];
        CHECK_EQ(pirn_run(return_arg, &r), r);
        CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 2}, return_arg, &r), r);
        CHECK_EQ(pirn_run_config(NULL, return_arg, &r), r);
    }
}

static int nested(void *arg)
{
    int zero = 0;
    pirn_config c = {0};
    CHECK_EQ(pirn_run(return_arg, &zero), -EBUSY);
    CHECK_EQ(pirn_run_config(&c, return_arg, &zero), -EBUSY);
    CHECK_EQ(pirn_start(&c), -EBUSY);
    CHECK_EQ(pirn_start(NULL), -EBUSY);
    CHECK_EQ(pirn_stop(), -EDEADLK);
    CHECK_EQ(pirn_id(), 1);
    atomic_fetch_add((atomic_int *)arg, 1);
    return 7;
}

TEST(nested_is_refused)
{
    CHECK_EQ(pirn_run(nested, &count), 7);
    CHECK_EQ(pirn_run(nested, &count), 7);
    CHECK_EQ(atomic_load(&count), 2);
}

TEST(no_function)
{
    pirn_config c = {0};
    CHECK_EQ(pirn_run(NULL, NULL), -EINVAL);
    CHECK_EQ(pirn_run_config(&c, NULL, NULL), -EINVAL);
    CHECK_EQ(pirn_stop(), -EINVAL); /* nothing was started */
}

/* --- configuration ----------------------------------------------------------------------------------- */

TEST(bad_configs)
{
    static const pirn_config bad[] = {
        {.procs = -1},
        {.procs = 1025},
        {.procs = INT32_MIN},
        {.procs = INT32_MAX},
        {.max_threads = -1},
        {.stack_size = 1},
        {.stack_size = PIRN_STACK_DENSE_8K},
        {.stack_size = ((size_t)1 << 30) + 1},
        {.stack_size = SIZE_MAX},
        {.time_slice = -1},
        {.stop_grace = -1},
    };
    int three = 3;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(pirn_run_config(&bad[i], return_arg, &three), -EINVAL);
        CHECK_EQ(pirn_start(&bad[i]), -EINVAL);
        CHECK_EQ(pirn_stop(), -EINVAL);
        CHECK_EQ(pirn_run(return_arg, &three), 3);
    }
}

TEST(good_configs)
{
    static const pirn_config good[] = {
        {.procs = 1},
        {.procs = 1024},
        {.max_threads = 100},
        {.stack_size = (size_t)64 << 10},
        {.stack_size = (size_t)1 << 20},
        {.stack_size = (size_t)1 << 30},
        {.time_slice = 1},
        {.time_slice = PIRN_NEVER},
        {.stop_grace = PIRN_NEVER},
        {.flags = PIRN_F_DEADLOCK},
    };
    int three = 3;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK_EQ(pirn_run_config(&good[i], return_arg, &three), 3);
}

static int procs_of_run(void *arg)
{
    (void)arg;
    return pirn_procs(0);
}

/* A program compiled with an older or a newer header. */
TEST(config_sizes)
{
    struct {
        pirn_config known;
        char tail[32];
    } newer = {.known = {.procs = 3}};
    CHECK_EQ(pirn_run_config_n(&newer.known, sizeof newer, procs_of_run, NULL), 3);
    CHECK_EQ(pirn_start_n(&newer.known, sizeof newer), 0);
    CHECK_EQ(pirn_stop(), 0);
    for (size_t i = 0; i < sizeof newer.tail; i += 31) {
        memset(newer.tail, 0, sizeof newer.tail);
        newer.tail[i] = 1;
        CHECK_EQ(pirn_run_config_n(&newer.known, sizeof newer, procs_of_run, NULL), -E2BIG);
        CHECK_EQ(pirn_start_n(&newer.known, sizeof newer), -E2BIG);
        CHECK_EQ(pirn_stop(), -EINVAL);
    }
    /* what a shorter struct does not have is the default, whatever lies behind it */
    pirn_config older = {.procs = 5, .max_threads = -1};
    CHECK_EQ(pirn_run_config_n(&older, sizeof older.procs, procs_of_run, NULL), 5);
    CHECK_EQ(pirn_run_config_n(&older, sizeof older, procs_of_run, NULL), -EINVAL);
    CHECK_GE(pirn_run_config_n(&older, 0, procs_of_run, NULL), 1);
}

/* Those who were compiled with another header have other metrics: what only they know is 0. */
static int metrics_sizes(void *arg)
{
    (void)arg;
    struct {
        pirn_metrics_v1 known;
        char tail[32];
    } newer;
    memset(&newer, 0x55, sizeof newer);
    CHECK_EQ(pirn_metrics_n(&newer.known, sizeof newer), 0);
    CHECK_EQ(newer.known.procs, 3);
    CHECK_EQ(newer.known.goroutines, 1);
    CHECK(newer.known.guard >= 1 && newer.known.guard <= 3); /* the last that is known */
    for (size_t i = 0; i < sizeof newer.tail; i++)
        CHECK_EQ(newer.tail[i], 0);
    pirn_metrics_v1 older; /* behind what a shorter struct has nothing is written */
    memset(&older, 0x55, sizeof older);
    CHECK_EQ(pirn_metrics_n(&older, offsetof(pirn_metrics_v1, threads)), 0);
    CHECK_EQ(older.procs, 3);
    CHECK_EQ(older.threads, 0x5555555555555555);
    CHECK_EQ(older.guard, 0x5555555555555555);
    CHECK_EQ(pirn_metrics_n(&older, 0), 0);
    CHECK_EQ(older.procs, 3);
    return 0;
}

TEST(metrics_of_other_sizes)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 3}, metrics_sizes, NULL), 0);
}

TEST(version)
{
    char numbers[40];
    snprintf(numbers, sizeof numbers, "%d.%d.%d", PIRN_VERSION_MAJOR, PIRN_VERSION_MINOR,
             PIRN_VERSION_PATCH);
    CHECK_STR(PIRN_VERSION, numbers);
    CHECK_STR(pirn_version(), PIRN_VERSION); /* of the library, and of the header */
}

static void nothing(void *arg)
{
    (void)arg;
}

static int attr_sizes(void *arg)
{
    (void)arg;
    struct {
        pirn_attr known;
        char tail[16];
    } newer = {.known = {.name = "newer"}};
    CHECK_EQ(pirn_spawn_n(&newer.known, sizeof newer, nothing, NULL), 0);
    newer.tail[15] = 1;
    CHECK_EQ(pirn_spawn_n(&newer.known, sizeof newer, nothing, NULL), -E2BIG);
    pirn_attr older = {.name = "older", .stack_size = SIZE_MAX};
    CHECK_EQ(pirn_spawn_n(&older, sizeof older.name, nothing, NULL), 0);
    CHECK_EQ(pirn_spawn_n(&older, sizeof older, nothing, NULL), -EINVAL);
    CHECK_EQ(pirn_spawn(NULL, NULL, NULL), -EINVAL);
    CHECK_EQ(pirn_spawn(&(pirn_attr){0}, NULL, NULL), -EINVAL);
    return 0;
}

TEST(attributes)
{
    CHECK_EQ(pirn_run(attr_sizes, NULL), 0);
}

TEST(no_runtime)
{
    pirn_metrics_v1 m;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pirn_spawn(NULL, nothing, NULL), -EAGAIN);
        CHECK_EQ(pirn_spawn(&(pirn_attr){.name = "x"}, nothing, NULL), -EAGAIN);
        CHECK_EQ(pirn_metrics(&m), -EAGAIN);
        CHECK_EQ(pirn_id(), 0);
        CHECK_EQ(pirn_num_goroutines(), 0);
        CHECK_EQ(pirn_procs(3), 0);
        pirn_yield();
        pirn_set_name("nobody");
        int zero = 0;
        CHECK_EQ(pirn_run(return_arg, &zero), 0); /* and the same after one has run */
    }
}

/* --- again and again ------------------------------------------------------------------------------------ */

static int entries(const char *dir)
{
    DIR *d = opendir(dir);
    CHECK(d != NULL);
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK(f != NULL);
    int n = 0, c;
    while ((c = getc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    return n;
}

struct census {
    int fds, threads, maps;
    size_t heap;
};

static struct census take_census(void)
{
    struct census c;
    /* ".", "..", this one, and ThreadSanitizer's; one that was joined may linger for a moment */
    WAIT_UNTIL(entries("/proc/self/task") == 3 + TEST_TSAN);
    c.fds = entries("/proc/self/fd");
    c.threads = entries("/proc/self/task");
    c.maps = mappings();
    c.heap = test_allocated();
    return c;
}

static void some_local(void *v)
{
    free(v);
}

static pirn_local_key key;

static void busy_life(int i)
{
    pirn_set_name("goroutine %d", i);
    CHECK_EQ(pirn_local_set(key, malloc(10)), 0);
    pirn_yield();
    atomic_fetch_add(&count, 1);
}

static void never_woken(void)
{
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    atomic_fetch_add(&count, 1);
    pirn_wg_wait(&wg); /* dropped here when the runtime ends */
    FAIL("woken without a done");
}

static int pipe_fds[2];

static void put_byte(void)
{
    CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
}

static void done_in_timer(void *wg)
{
    pirn_wg_done(wg);
}

/* Time, the poller and its thread. */
static void busy_waits(void)
{
    pirn_wg wg = {0};
    char byte;
    CHECK_EQ(pirn_sleep(PIRN_US), 0);
    pirn_wg_add(&wg, 1);
    pirn_timer *func = pirn_after_func(PIRN_US, done_in_timer, &wg);
    pirn_timer *once = pirn_timer_new(PIRN_US);
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_US);
    CHECK(pirn_chan_recv(pirn_timer_chan(once), NULL));
    CHECK(!pirn_chan_recv(pirn_ctx_done(ctx), NULL));
    CHECK_EQ(pirn_ctx_err(ctx), -ETIMEDOUT);
    pirn_wg_wait(&wg);
    pirn_timer_free(once);
    pirn_timer_free(func);
    pirn_ctx_release(ctx);
    pirn_go(put_byte);
    CHECK_EQ(pirn_select(PIRN_READABLE(pipe_fds[0]), PIRN_AFTER(LONG)), 0);
    CHECK_EQ(read(pipe_fds[0], &byte, 1), 1);
}

static pirn_ctx *watch_signal(void)
{
    return pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGUSR1}, 1);
}

static void busy_signal(void)
{
    pirn_ctx *ctx = watch_signal();
    raise(SIGUSR1);
    CHECK(!pirn_chan_recv(pirn_ctx_done(ctx), NULL));
    CHECK_EQ(pirn_ctx_cause(ctx), -EINTR);
    pirn_ctx_release(ctx);
}

static void never_readable(void)
{
    atomic_fetch_add(&count, 1);
    pirn_select(PIRN_READABLE(pipe_fds[0]), PIRN_AFTER(3600 * PIRN_SEC));
    FAIL("nothing was written");
}

static void never_over(void)
{
    atomic_fetch_add(&count, 1);
    pirn_sleep(3600 * PIRN_SEC);
    FAIL("an hour is not over");
}

static void never_chosen(void)
{
    pirn_case wide[20] = {{0}}; /* so many that they take memory */
    atomic_fetch_add(&count, 1);
    pirn_selectv(wide, 20);
    FAIL("none of them is ever ready");
}

/* What is still to come when the runtime ends. */
static struct {
    pirn_timer *timer, *func;
    pirn_ticker *ticker;
    pirn_ctx *deadline, *signal;
} left;

static void leave_some(void)
{
    left.timer = pirn_timer_new(3600 * PIRN_SEC);
    left.func = pirn_after_func(3600 * PIRN_SEC, nothing, NULL);
    left.ticker = pirn_ticker_new(PIRN_US);
    left.deadline = pirn_ctx_with_timeout(pirn_ctx_background(), 3600 * PIRN_SEC);
    left.signal = watch_signal();
}

static void free_left(void)
{
    pirn_timer_free(left.timer);
    pirn_timer_free(left.func);
    pirn_ticker_free(left.ticker);
    pirn_ctx_release(left.deadline);
    pirn_ctx_release(left.signal);
}

static int busy_run(void *arg)
{
    pirn_wg wg = {0};
    atomic_store(&count, 0);
    for (int i = 0; i < 20; i++)
        pirn_wg_go(&wg, busy_life, i);
    pirn_wg_wait(&wg);
    busy_waits();
    if (!TEST_TSAN) /* who calls a handler only when its thread calls something that it knows */
        busy_signal();
    leave_some();
    pirn_go(never_woken);
    pirn_go(never_readable);
    pirn_go(never_over);
    pirn_go(never_chosen);
    while (atomic_load(&count) < 24)
        pirn_yield();
    return *(int *)arg;
}

/* Nothing is left behind: after many lives the process is what it was after the first ones. What
 * the C library keeps (arenas, stacks of ended threads) depends on chance and is turned off. */
TEST_ATTR(run_again_and_again, PROCS, .timeout = 120,
          .env = "GLIBC_TUNABLES=glibc.pthread.stack_cache_size=0:glibc.malloc.arena_max=1:"
                 "glibc.malloc.tcache_count=0")
{
    int cycles = SANITIZED ? 20 : 1000;
    struct census early = {0};
    CHECK_EQ(pirn_local_new(&key, some_local), 0);
    CHECK_EQ(pipe(pipe_fds), 0);
    for (int i = 0; i < cycles; i++) {
        CHECK_EQ(pirn_run(busy_run, &i), i);
        free_left();
        if (i == 9)
            early = take_census();
    }
    struct census late = take_census();
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    CHECK_EQ(late.fds, early.fds);
    CHECK_EQ(late.threads, early.threads);
    CHECK_EQ(late.heap, early.heap);
    if (SANITIZED || test_on_valgrind()) {
        printf("maps are the tool's too: not compared\n");
        return;
    }
    CHECK_EQ(late.maps, early.maps);
}

/* --- start and stop --------------------------------------------------------------------------------------- */

TEST(starts_are_counted)
{
    for (int n = 1; n <= 5; n++) {
        for (int i = 0; i < n; i++)
            CHECK_EQ(pirn_start(NULL), 0);
        for (int i = 0; i < n; i++) {
            pirn_wg wg = {0};
            pirn_wg_go(&wg, add_one);
            pirn_wg_wait(&wg);
            CHECK_EQ(pirn_stop(), 0);
        }
        CHECK_EQ(pirn_stop(), -EINVAL);
        CHECK_EQ(pirn_spawn(NULL, nothing, NULL), -EAGAIN);
    }
    CHECK_EQ(atomic_load(&count), 1 + 2 + 3 + 4 + 5);
}

static void stop_here(void)
{
    CHECK_EQ(pirn_stop(), -EDEADLK);
    atomic_fetch_add(&count, 1);
}

TEST(stop_from_a_goroutine)
{
    pirn_wg wg = {0};
    CHECK_EQ(pirn_start(NULL), 0);
    pirn_wg_go(&wg, stop_here);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&count), 1);
    CHECK_EQ(pirn_stop(), 0);
}

static pirn_wg gate;

static void *foreign_waits(void *arg)
{
    (void)arg;
    pirn_wg_wait(&gate);
    return NULL;
}

/* Refused as long as a thread of the program's own waits; then it stops. */
TEST_ATTR(stop_while_a_thread_waits, PROCS)
{
    pthread_t t;
    CHECK_EQ(pirn_start(NULL), 0);
    pirn_wg_add(&gate, 1);
    CHECK_EQ(pthread_create(&t, NULL, foreign_waits, NULL), 0);
    /* It sleeps, or is about to: the group's word says so above its two lock bits. */
    while (!((uint32_t)__atomic_load_n(&gate.state_, __ATOMIC_ACQUIRE) & ~3u))
        sched_yield();
    for (int i = 0; i < 10; i++)
        CHECK_EQ(pirn_stop(), -EBUSY);
    CHECK_EQ(pirn_start(NULL), 0); /* a stop that is not the last is none of its business */
    CHECK_EQ(pirn_stop(), 0);
    CHECK_EQ(pirn_stop(), -EBUSY);
    pirn_wg_done(&gate);
    pthread_join(t, NULL);
    CHECK_EQ(pirn_stop(), 0);
}

#define RUNS (TEST_TSAN ? 10 : 100)

/* pirn_run beside pirn_start: one more goroutine, not the first, and the runtime stays. */
static int not_the_first(void *arg)
{
    CHECK_GT(pirn_id(), 0);
    pirn_yield();
    return *(int *)arg;
}

static void *run_many(void *arg)
{
    for (int i = 0; i < RUNS; i++)
        CHECK_EQ(pirn_run(not_the_first, &i), i);
    return arg;
}

TEST_ATTR(run_while_started, PROCS)
{
    pthread_t t[4];
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, run_many, NULL), 0);
    run_many(NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_metrics(&m), 0);
    CHECK_EQ(m.spawned, 5 * RUNS);
    CHECK_EQ(pirn_stop(), 0);
}

/* The same without a runtime below: now and then one of them is the one that starts or ends it. */
TEST_ATTR(runs_from_many_threads, PROCS)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, run_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(pirn_stop(), -EINVAL);
}

static void *start_stop(void *arg)
{
    for (int i = 0; i < RUNS; i++) {
        pirn_wg wg = {0};
        CHECK_EQ(pirn_start(NULL), 0);
        pirn_wg_go(&wg, add_one);
        pirn_wg_wait(&wg);
        /* -EBUSY: another thread waits, and this would have been the last stop */
        for (int err; (err = pirn_stop());)
            CHECK_EQ(err, -EBUSY);
    }
    return arg;
}

TEST_ATTR(starts_from_many_threads, PROCS)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, start_stop, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&count), 4 * RUNS);
    CHECK_EQ(pirn_stop(), -EINVAL);
}

/* --- threads of the program's own ---------------------------------------------------------------------------- */

static void spawn_more(pirn_wg *wg)
{
    atomic_fetch_add(&count, 1);
    pirn_wg_go(wg, add_one);
}

static void *foreign_spawns(void *arg)
{
    (void)arg;
    for (int i = 0; i < RUNS; i++) {
        pirn_wg wg = {0};
        CHECK_EQ(pirn_id(), 0);
        for (int k = 0; k < 10; k++)
            pirn_wg_go(&wg, spawn_more, &wg);
        pirn_wg_wait(&wg);
        CHECK_GE(pirn_num_goroutines(), 0);
        CHECK_GE(pirn_procs(0), 1);
    }
    return NULL;
}

static void spawn_and_wait_in_threads(void)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, foreign_spawns, NULL), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&count), 8 * RUNS * 20);
}

TEST_ATTR(threads_spawn_and_wait, PROCS)
{
    CHECK_EQ(pirn_start(NULL), 0);
    spawn_and_wait_in_threads();
    WAIT_UNTIL(pirn_num_goroutines() == 0);
    CHECK_EQ(pirn_stop(), 0);
}

static void *run_threads(void *arg)
{
    spawn_and_wait_in_threads();
    atomic_store(&flag, 1);
    return arg;
}

static int yield_until_flag(void *arg)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, run_threads, NULL), 0);
    while (!atomic_load(&flag))
        pirn_yield();
    pthread_join(t, arg);
    return 0;
}

/* The same under pirn_run, beside a goroutine 1 that is busy. */
TEST_ATTR(threads_beside_run, PROCS)
{
    CHECK_EQ(pirn_run(yield_until_flag, NULL), 0);
}

/* --- the end --------------------------------------------------------------------------------------------------- */

static int leave_waiters(void *arg)
{
    int n = *(int *)arg;
    atomic_store(&count, 0);
    for (int i = 0; i < n; i++)
        pirn_go(never_woken);
    while (atomic_load(&count) < n)
        pirn_yield();
    return n;
}

/* Dropped where they wait: nothing of them runs after the end. */
TEST_ATTR(waiters_are_dropped, PROCS)
{
    for (int i = 0; i < 10; i++) {
        int n = (TEST_TSAN ? 8 : 100) * i;
        CHECK_EQ(pirn_run(leave_waiters, &n), n);
    }
}

static void yield_for_ever(void)
{
    atomic_fetch_add(&count, 1);
    for (;;) {
        pirn_yield();
        atomic_fetch_add(&flag, 1);
    }
}

static void spawn_for_ever(void)
{
    pirn_wg wg = {0};
    atomic_fetch_add(&count, 1);
    for (;;) {
        pirn_wg_go(&wg, add_one);
        pirn_wg_wait(&wg);
    }
}

static int leave_runners(void *arg)
{
    (void)arg;
    atomic_store(&count, 0);
    for (int i = 0; i < 5; i++) {
        pirn_go(yield_for_ever);
        pirn_go(spawn_for_ever);
    }
    while (atomic_load(&count) < 10)
        pirn_yield();
    return 3;
}

static atomic_int ticks;

static void compute_a_little(void)
{
    atomic_fetch_add(&count, 1);
    for (;;) {
        struct timespec t = {0, 1000000};
        nanosleep(&t, NULL);
        atomic_fetch_add(&ticks, 1);
        pirn_id(); /* any call */
    }
}

static int leave_computing(void *arg)
{
    (void)arg;
    atomic_store(&count, 0);
    pirn_go(compute_a_little);
    while (atomic_load(&count) < 1)
        pirn_yield();
    return 4;
}

/* One that runs is stopped at its next call, whatever call it is. */
TEST_ATTR(runners_are_stopped, PROCS)
{
    for (int i = 0; i < (SANITIZED ? 5 : 20); i++) {
        CHECK_EQ(pirn_run(leave_runners, NULL), 3);
        int seen = atomic_load(&flag);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        CHECK_EQ(atomic_load(&flag), seen); /* nobody runs any more */
    }
    pirn_config two = {.procs = 2}; /* it keeps its P busy: goroutine 1 needs another */
    for (int i = 0; i < (SANITIZED ? 2 : 5); i++) {
        CHECK_EQ(pirn_run_config(&two, leave_computing, NULL), 4);
        int seen = atomic_load(&ticks);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        CHECK_EQ(atomic_load(&ticks), seen);
    }
}

static void come_late(void)
{
    atomic_fetch_add(&count, 1);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    atomic_store(&ticks, 1);
    for (;;)
        pirn_yield();
}

static int leave_late(void *arg)
{
    (void)arg;
    pirn_go(come_late);
    while (!atomic_load(&count))
        pirn_yield();
    return 8;
}

/* The longest grace there is waits as long as it takes. */
TEST(grace_for_ever)
{
    pirn_config c = {.procs = 2, .stop_grace = PIRN_NEVER};
    CHECK_EQ(pirn_run_config(&c, leave_late, NULL), 8);
    CHECK_EQ(atomic_load(&ticks), 1);
}

/* --- a goroutine that does not come back in time ---------------------------------------------------------------- */

static atomic_int release, released;

static void compute_until_released(void)
{
    pirn_set_name("stubborn");
    atomic_fetch_add(&count, 1);
    while (!atomic_load(&release))
        sched_yield(); /* the kernel's: no call into pirn */
    atomic_store(&released, 1);
    pirn_yield(); /* here its thread ends */
    FAIL("a goroutine of a runtime that has ended ran on");
}

static int leave_stubborn(void *arg)
{
    (void)arg;
    pirn_go(compute_until_released);
    while (!atomic_load(&count))
        pirn_yield();
    return 5;
}

static void run_stubborn(void *arg)
{
    (void)arg;
    pirn_config c = {.procs = 2, .stop_grace = 30 * PIRN_MS};
    int six = 6;
    CHECK_EQ(pirn_run_config(&c, leave_stubborn, NULL), 5);
    CHECK_EQ(atomic_load(&released), 0);
    CHECK_EQ(pirn_run(return_arg, &six), 6); /* a new life beside the thread that was left */
    CHECK_EQ(pirn_start(NULL), 0);
    atomic_store(&release, 1);
    WAIT_UNTIL(atomic_load(&released));
    for (int i = 0; i < 100; i++) {
        pirn_wg wg = {0};
        pirn_wg_go(&wg, add_one);
        pirn_wg_wait(&wg);
    }
    CHECK_EQ(pirn_stop(), 0);
    CHECK_EQ(pirn_run(return_arg, &six), 6);
}

/* It comes when nobody waits any more, and no atomic of the program's orders it after the stop. */
static void come_when_told(void)
{
    atomic_fetch_add(&count, 1);
    while (!atomic_load_explicit(&release, memory_order_relaxed))
        sched_yield();
    atomic_store(&released, 1);
    pirn_yield();
}

static int leave_one_behind(void *arg)
{
    (void)arg;
    pirn_go(come_when_told);
    while (!atomic_load(&count))
        pirn_yield();
    return 8;
}

static void run_late(void *arg)
{
    (void)arg;
    pirn_config c = {.procs = 2, .stop_grace = 30 * PIRN_MS};
    CHECK_EQ(pirn_run_config(&c, leave_one_behind, NULL), 8);
    atomic_store_explicit(&release, 1, memory_order_relaxed);
    WAIT_UNTIL(atomic_load(&released));
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* meanwhile its thread ends */
}

/* One line says so, and nothing else is said. */
static void check_left_behind(void (*fn)(void *), const char *name)
{
    char line[200];
    int status = test_in_child(fn, NULL);
    const char *said = strchr(test_said, '(');
    CHECK_EQ(strncmp(test_said, "pirn: goroutine ", 16), 0);
    CHECK(said != NULL);
    snprintf(line, sizeof line,
             "(%s) still runs after the runtime has ended; its thread is left behind\n", name);
    CHECK_STR(said, line);
    CHECK_EQ(status, 0);
}

TEST(left_behind)
{
    check_left_behind(run_stubborn, "stubborn");
}

TEST(left_behind_and_late)
{
    check_left_behind(run_late, "no name");
}

/* --- objects that outlive the runtime ----------------------------------------------------------- */

static pirn_wg survivor;
static atomic_int waits;

static void wait_for_survivor(void)
{
    atomic_fetch_add(&waits, 1);
    pirn_wg_wait(&survivor);
    atomic_store(&waits, -1000); /* it was dropped: this must not happen */
}

static int leave_survivors(void *arg)
{
    (void)arg;
    pirn_wg_add(&survivor, 1);
    for (int i = 0; i < 10; i++)
        pirn_go(wait_for_survivor);
    while (atomic_load(&waits) < 10)
        pirn_yield();
    for (int i = 0; i < 100; i++)
        pirn_yield();
    return 0;
}

static int wait_again(void *arg)
{
    (void)arg;
    pirn_wg_add(&survivor, 1);
    pirn_go(pirn_wg_done, &survivor);
    pirn_wg_wait(&survivor);
    return 3;
}

TEST_ATTR(wg_outlives_the_runtime, .procs = "1,2,4,16")
{
    CHECK_EQ(pirn_run(leave_survivors, NULL), 0);
    pirn_wg_done(&survivor); /* nobody is there to be woken */
    CHECK_EQ(pirn_run(wait_again, NULL), 3);
    CHECK_EQ(atomic_load(&waits), 10);
}
