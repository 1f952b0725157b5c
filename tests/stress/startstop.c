/* SPDX-License-Identifier: MIT */
/*
 * The runtime starts and ends a thousand times while goroutines run, wait and are about to run;
 * from several threads at once; with threads that submit while it ends. Nothing is left behind.
 */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>

#include "stress/recount.h"

#define CYCLES (stress_long() ? 1000 : TEST_ASAN || TEST_TSAN || PIRN_FLAVOUR_CHAOS ? 100 : 300)

static at_u64 ran;

static void count_run(void *arg)
{
    (void)arg;
    at_add(&ran, 1, RELAXED);
}

static void wait_for_ever(pirn_wg *never)
{
    pirn_wg_wait(never);
    FAIL("nobody opens this gate");
}

static void run_for_ever(void)
{
    for (;;) {
        pirn_yield();
    }
}

static void compute_and_come_back(void)
{
    for (;;) {
        for (int i = 0; i < 2000; i++) {
            at_pause();
        }
        pirn_yield();
    }
}

struct cycle {
    struct rand rand;
    int result;
    pirn_wg never;
};

/* Returns while all the others are there still, each in some state. */
static int leave_them(void *arg)
{
    struct cycle *c = arg;
    c->never = (pirn_wg){0};
    pirn_wg_add(&c->never, 1);
    for (uint32_t i = rand_below(&c->rand, 30); i; i--) {
        pirn_go(wait_for_ever, &c->never);
    }
    for (uint32_t i = rand_below(&c->rand, 4); i; i--) {
        pirn_go(run_for_ever);
        pirn_go(compute_and_come_back);
    }
    for (uint32_t i = rand_below(&c->rand, 20); i; i--) {
        pirn_yield();
    }
    for (uint32_t i = rand_below(&c->rand, 400); i; i--) {
        CHECK_EQ(pirn_spawn(NULL, count_run, NULL), 0);
    }
    return c->result;
}

TEST_ATTR(cycles, .procs = "1,2,4,16", .timeout = 60)
{
    struct cycle c = {0};
    int64_t size = 0;
    mallopt(M_ARENA_MAX, 1); /* so that malloc does not grow with the number of threads */
    rand_seed(&c.rand, stress_seed());
    CHECK_EQ(pirn_run(leave_them, &c), 0); /* a sanitizer begins its own thread with the first */
    int threads = thread_count();
    for (int i = 0; i < CYCLES; i++) {
        c.result = i;
        CHECK_EQ(pirn_run(leave_them, &c), i);
        CHECK_EQ(pirn_num_goroutines(), 0);
        CHECK_EQ(pirn_spawn(NULL, count_run, NULL), -EAGAIN);
        if (i == CYCLES / 4) {
            size = proc_status("VmSize");
        }
    }
    for (int64_t until = now_ns() + 2 * PIRN_SEC; thread_count() != threads;) {
        CHECK_LT(now_ns(), until); /* the kernel takes a moment to forget a joined thread */
    }
    if (!TEST_ASAN && !TEST_TSAN) {
        CHECK_LT(proc_status("VmSize") - size,
                 (int64_t)16 << 20); /* one chunk of stacks is 128 MB */
    }
}

/* --- several threads start and stop ------------------------------------------------------------- */

static void fork_two(int depth)
{
    if (depth) {
        pirn_wg wg = {0};
        pirn_wg_go(&wg, fork_two, depth - 1);
        pirn_wg_go(&wg, fork_two, depth - 1);
        pirn_wg_wait(&wg);
    }
    at_add(&ran, 1, RELAXED);
}

static int fork_main(void *arg)
{
    fork_two(*(int *)arg);
    return 5;
}

static void *start_and_stop(void *arg)
{
    uint64_t *seed = arg;
    struct rand r;
    rand_seed(&r, *seed);
    for (int i = 0; i < CYCLES / 4; i++) {
        pirn_wg wg = {0};
        int depth = 4;
        if (rand_below(&r, 2)) {
            CHECK_EQ(pirn_start(NULL), 0);
            pirn_wg_go(&wg, fork_two, depth);
            pirn_wg_wait(&wg);
            CHECK_EQ(pirn_stop(), 0);
        } else {
            CHECK_EQ(pirn_run(fork_main, &depth), 5);
        }
        if (rand_below(&r, 4) == 0) {
            sched_yield();
        }
    }
    return NULL;
}

TEST_ATTR(from_many_threads, .procs = "1,2,4,16", .timeout = 60)
{
    pthread_t t[4];
    uint64_t seeds[4], seed = stress_seed();
    for (int i = 0; i < 4; i++) {
        seeds[i] = seed + (uint64_t)i;
        CHECK_EQ(pthread_create(&t[i], NULL, start_and_stop, &seeds[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    CHECK_EQ(at_load(&ran, RELAXED), (uint64_t)(CYCLES / 4) * 4 * 31);
    CHECK_EQ(pirn_stop(), -EINVAL);
    CHECK_EQ(at_load(&sched.nforeign, RELAXED), 0);
    CHECK_EQ(at_load(&sched.nforeign_parked, RELAXED), 0);
}

/* --- threads that submit meanwhile -------------------------------------------------------------- */

static at_u32 over;

static void *submit(void *arg)
{
    uint64_t *accepted = arg;
    pirn_metrics_v1 m;
    struct rand r;
    rand_seed(&r, (uint64_t)(uintptr_t)arg);
    while (!at_load(&over, RELAXED)) {
        int err = pirn_spawn(NULL, count_run, NULL);
        CHECK(err == 0 || err == -EAGAIN);
        *accepted += err == 0;
        switch (rand_below(&r, 8)) {
        case 0:
            err = pirn_metrics(&m);
            CHECK(err == 0 || err == -EAGAIN);
            break;
        case 1: CHECK_GE(pirn_num_goroutines(), 0); break;
        case 2: CHECK_GE(pirn_procs(1 + (int)rand_below(&r, 8)), 0); break;
        case 3:
            err = pirn_spawn(&(pirn_attr){.stack_size = PIRN_STACK_DENSE_8K, .name = "dense"},
                             count_run, NULL);
            CHECK(err == 0 || err == -EAGAIN);
            *accepted += err == 0;
            break;
        default: sched_yield();
        }
    }
    return NULL;
}

TEST_ATTR(submit_while_it_ends, .procs = "1,2,4,16", .timeout = 60)
{
    pthread_t t[3];
    uint64_t accepted[3] = {0};
    struct rand r;
    rand_seed(&r, stress_seed());
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&t[i], NULL, submit, &accepted[i]), 0);
    }
    for (int i = 0; i < CYCLES / 4; i++) {
        CHECK_EQ(pirn_start(NULL), 0);
        sleep_ns(rand_below(&r, 2000) * PIRN_US);
        CHECK_EQ(pirn_stop(), 0);
    }
    at_store(&over, 1, RELAXED);
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
    }
    CHECK_GT(accepted[0] + accepted[1] + accepted[2], 0);
    CHECK_LE(at_load(&ran, RELAXED), accepted[0] + accepted[1] + accepted[2]);
}

/* --- the thread whose done lets main return ----------------------------------------------------- */

/* The thread is held up at a random moment of its pirn_wg_done, as by a busy machine. Main may have
 * returned and the runtime be gone before it goes on. */
#define HELD_UP (TEST_ASAN || TEST_TSAN ? 100 : 150)

static pirn_wg *released;
static at_u32 go_on, held_up;

static void hold_up(int sig)
{
    (void)sig;
    at_store(&held_up, 1, RELAXED);
    sleep_ns(25 * PIRN_MS);
}

static void *release(void *arg)
{
    (void)arg;
    while (!at_load(&go_on, ACQUIRE)) {
        at_pause();
    }
    pirn_wg_done(released);
    return NULL;
}

static int wait_for_release(void *arg)
{
    pirn_go(run_for_ever); /* somebody is awake to run main, before the thread wakes anybody */
    pirn_wg_wait(arg);
    return 3;
}

static void *run_it(void *arg)
{
    CHECK_EQ(pirn_run(wait_for_release, arg), 3);
    return NULL;
}

TEST_ATTR(done_while_it_ends, .procs = "2,4", .timeout = 60)
{
    struct rand r;
    rand_seed(&r, stress_seed());
    /* SA_ONSTACK without such a stack: the thread's own; dense stacks want it said. */
    CHECK_EQ(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = hold_up, .sa_flags = SA_ONSTACK},
                       NULL),
             0);
    for (int i = 0; i < HELD_UP; i++) {
        static pirn_wg wg;
        pthread_t releaser, runner;
        wg = (pirn_wg){0};
        pirn_wg_add(&wg, 1);
        released = &wg;
        at_store(&go_on, 0, RELAXED);
        CHECK_EQ(pthread_create(&releaser, NULL, release, NULL), 0);
        CHECK_EQ(pthread_create(&runner, NULL, run_it, &wg), 0);
        sleep_ns(PIRN_MS);               /* main parks, mostly */
        pthread_kill(releaser, SIGUSR1); /* it takes some microseconds to arrive */
        for (int64_t until = now_ns() + rand_below(&r, 12000); now_ns() < until;) {
            at_pause();
        }
        at_store(&go_on, 1, RELEASE);
        pthread_join(runner, NULL);
        pthread_join(releaser, NULL);
    }
}

/* --- reports that are under way ----------------------------------------------------------------- */

/* The world is stopped, or about to be, by one that is stopped itself at its next entry: the next runtime
 * finds everything free again. */
static int null_fd;

static void dump_for_ever(void)
{
    for (;;) {
        CHECK_EQ(pirn_dump(null_fd), 0);
        if (TEST_TSAN) {
            pirn_yield(); /* there is no preemption */
        }
    }
}

static void report_leaks_for_ever(void)
{
    for (;;) {
        pirn_leak_report(-1);
        if (TEST_TSAN) {
            pirn_yield();
        }
    }
}

static int leave_them_reporting(void *arg)
{
    struct rand *r = arg;
    CHECK_EQ(pirn_dump(null_fd), 0);
    CHECK(pirn_leak_report(-1) >= -ENOTSUP);
    for (int i = 0; i < 2; i++) {
        pirn_go(dump_for_ever);
        pirn_go(report_leaks_for_ever);
    }
    pirn_sleep(rand_below(r, 2000) * PIRN_US);
    return 7;
}

TEST_ATTR(reports_while_it_ends, .procs = "1,2,4,16", .timeout = 60)
{
    struct rand r;
    rand_seed(&r, stress_seed());
    CHECK_GE(null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC), 0);
    for (int i = 0; i < CYCLES / 10; i++) {
        CHECK_EQ(pirn_run(leave_them_reporting, &r), 7);
    }
    close(null_fd);
}
