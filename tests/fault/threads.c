/* SPDX-License-Identifier: MIT */
/*
 * Threads can't be made, from the N-th on. The first three are the runtime's own (sysmon, factory,
 * the first M): without them it does not start. Without later ones it goes on with fewer, and says
 * so once.
 */
#include "stress/recount.h"
#include <dlfcn.h>

static at_u32 fail_from; /* this call and all later ones fail; 0: none */
static at_u32 made;
static pthread_mutex_t needed = PTHREAD_MUTEX_INITIALIZER; /* to make one, as malloc's lock is */

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    uint32_t n = at_add(&made, 1, RELAXED) + 1, from = at_load(&fail_from, RELAXED);
    if (from && n >= from) {
        return EAGAIN;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    pthread_mutex_lock(&needed);
    int err = real(t, attr, fn, arg);
    pthread_mutex_unlock(&needed);
    return err;
}

static void fail_threads_from(uint32_t n)
{
    at_store(&made, 0, RELAXED);
    at_store(&fail_from, n, RELAXED);
}

/* --- the start ---------------------------------------------------------------------------------- */

static int nothing(void *arg)
{
    (void)arg;
    return 1;
}

TEST_ATTR(start_fails, .procs = "1,4")
{
    CHECK_EQ(pirn_run(nothing, NULL), 1); /* a sanitizer begins its own thread with the first */
    int threads = thread_count();
    for (int round = 0; round < 20; round++) {
        for (uint32_t n = 1; n <= 3; n++) {
            fail_threads_from(n);
            CHECK_EQ(pirn_run(nothing, NULL), -EAGAIN);
            CHECK_EQ(pirn_start(NULL), -EAGAIN);
            CHECK_EQ(pirn_spawn(NULL, NULL, NULL), -EINVAL);
            CHECK_EQ(pirn_num_goroutines(), 0);
            CHECK_EQ(pirn_stop(), -EINVAL);
        }
        fail_threads_from(0);
        CHECK_EQ(pirn_run(nothing, NULL), 1);
    }
    for (int64_t until = now_ns() + 2 * PIRN_SEC; thread_count() != threads;) {
        CHECK_LT(now_ns(), until);
    }
}

/* One P needs one thread: the limit may be as low as that. */
TEST(one_thread_is_enough)
{
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1, .max_threads = 1}, nothing, NULL), 1);
    }
}

/* --- later -------------------------------------------------------------------------------------- */

static at_u64 ran;

static void fork_tree(int depth)
{
    if (depth) {
        pirn_wg wg = {0};
        for (int i = 0; i < 3; i++) {
            pirn_wg_go(&wg, fork_tree, depth - 1);
        }
        pirn_yield();
        pirn_wg_wait(&wg);
    }
    at_add(&ran, 1, RELAXED);
}

static uint32_t fail;

static void go_on_with_fewer(void)
{
    pirn_metrics_v1 m;
    pirn_wg wg = {0};
    uint64_t rounds = 0;
    fail_threads_from(fail);
    CHECK_EQ(pirn_start(NULL), 0);
    /* Until one too many is asked for, and long enough that threads are asked for again and again: every 100 ms. */
    int64_t from = now_ns();
    while (now_ns() < from + 400 * PIRN_MS || at_load(&made, RELAXED) < fail) {
        CHECK_LT(now_ns(), from + 20 * PIRN_SEC);
        pirn_wg_go(&wg, fork_tree, 6);
        pirn_wg_wait(&wg);
        CHECK_EQ(at_load(&ran, RELAXED), ++rounds * 1093);
        sleep_ns(PIRN_MS);
    }
    CHECK_EQ(pirn_metrics(&m), 0);
    CHECK_LE(m.threads, fail - 3);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

static void must_go_on(uint32_t n)
{
    fail = n;
    CHECK_EQ(count_in_stderr(go_on_with_fewer, "pirn: cannot make a thread"), 1);
}

TEST_ATTR(later_ones_fail_1, .procs = "2,4,16")
{
    must_go_on(4);
}

TEST_ATTR(later_ones_fail_2, .procs = "4,16")
{
    must_go_on(5);
}

TEST_ATTR(later_ones_fail_move, .procs = "4,16", .env = "PIRN_DEBUG=move=1")
{
    must_go_on(6);
}

/* The number of Ps changes while the threads for them can't be made. */
static void resize_without_threads(void)
{
    pirn_wg wg = {0};
    struct rand r;
    rand_seed(&r, stress_seed());
    fail_threads_from(5);
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 4}), 0);
    for (int64_t until = now_ns() + 3 * PIRN_SEC; now_ns() < until;) {
        pirn_wg_go(&wg, fork_tree, 3);
        pirn_wg_go(&wg, fork_tree, 3);
        for (int i = 0; i < 50; i++) {
            CHECK_GT(pirn_procs(1 + (int)rand_below(&r, 8)), 0);
            lock(&sched.lock);
            sched.no_threads_until = 0; /* ask again at once */
            unlock(&sched.lock);
        }
    }
    pirn_wg_wait(&wg);
    pirn_procs(4);
    CHECK_EQ(pirn_procs(0), 4);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

TEST_ATTR(resize, .timeout = 60)
{
    CHECK_EQ(count_in_stderr(resize_without_threads, "pirn: cannot make a thread"), 1);
}

/* --- all threads block, and for a while there is no other ----------------------------------------- */

static int pipe_fds[2];

static void *read_plainly(void *arg)
{
    CHECK_EQ(read(pipe_fds[0], arg, 1), 1);
    return arg;
}

static void write_plainly(void)
{
    CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
}

static void write_later(void *arg)
{
    (void)arg;
    write_plainly();
}

/* Whoever would write has no thread, until one can be made again. */
static void blocks_before(void (*submit)(void))
{
    char c;
    submit();
    pirn_blocking(read_plainly, &c);
}

static void submit_goroutine(void)
{
    pirn_go(write_plainly);
}

static pirn_timer *timer;

static void submit_timer(void)
{
    timer = pirn_after_func(60 * PIRN_MS, write_later, NULL);
}

static void submit_far_timer(void)
{
    timer = pirn_after_func(400 * PIRN_MS, write_later, NULL);
}

static void submit_nothing(void)
{
}

static void (*submit)(void);

static at_u32 failing; /* the thread that ends it has to be made before */

static void *submit_from_outside(void *arg)
{
    while (!at_load(&failing, ACQUIRE)) {
        sleep_ns(PIRN_MS);
    }
    if (submit == submit_nothing) {
        sleep_ns(20 * PIRN_MS); /* it blocks, and no thread can be made */
        pirn_go(write_plainly);
    }
    sleep_ns(30 * PIRN_MS);
    fail_threads_from(0);
    return arg;
}

static void threads_come_back(void)
{
    pirn_wg wg = {0};
    pthread_t t;
    CHECK_EQ(pipe(pipe_fds), 0);
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 1}), 0);
    at_store(&failing, 0, RELAXED);
    CHECK_EQ(pthread_create(&t, NULL, submit_from_outside, NULL), 0);
    fail_threads_from(1);
    at_store(&failing, 1, RELEASE);
    pirn_wg_go(&wg, blocks_before, submit);
    pirn_wg_wait(&wg);
    pthread_join(t, NULL);
    pirn_timer_free(timer);
    timer = NULL;
    CHECK_EQ(pirn_stop(), 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void must_come_back(void (*by)(void))
{
    submit = by;
    count_in_stderr(threads_come_back, "pirn: cannot make a thread");
}

TEST(work_waits_for_a_thread)
{
    must_come_back(submit_goroutine);
}

TEST(work_from_outside_waits_for_a_thread)
{
    must_come_back(submit_nothing);
}

TEST(a_timer_waits_for_a_thread)
{
    must_come_back(submit_timer);
}

TEST(a_far_timer_waits_for_a_thread)
{
    must_come_back(submit_far_timer);
}

/* --- and the world is stopped ---------------------------------------------------------------------- */

static at_u32 over;

static void *sleep_plainly(void *arg)
{
    sleep_ns(50 * PIRN_US);
    return arg;
}

static void block_often(void)
{
    while (!at_load(&over, RELAXED)) {
        pirn_blocking(sleep_plainly, NULL);
    }
}

static uint32_t count_live_ps(void)
{
    uint32_t n = 0;
    lock(&sched.lock);
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        n += at_load(&at_load(&sched.allp[i], RELAXED)->status, RELAXED) != P_RETIRED;
    }
    unlock(&sched.lock);
    return n;
}

static void stop_without_threads(void)
{
    pirn_wg wg = {0};
    at_store(&over, 0, RELAXED);
    fail_threads_from(5);
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 2}), 0);
    for (int i = 0; i < 6; i++) {
        pirn_wg_go(&wg, block_often);
    }
    for (int i = 0; i < 300; i++) {
        CHECK(foreign_enter());
        CHECK(world_stop(now_ns() + 25 * PIRN_SEC));
        CHECK_EQ(count_live_ps(), 2);
        world_start();
        foreign_leave();
        sleep_ns(200 * PIRN_US);
    }
    at_store(&over, 1, RELAXED);
    pirn_wg_wait(&wg);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

TEST_ATTR(stop_the_world, .timeout = 60)
{
    CHECK_EQ(count_in_stderr(stop_without_threads, "pirn: cannot make a thread"), 1);
}

/* The world is stopped and started, and all that is ready then has a thread already; nobody else comes by. */
static void block_plainly_often(at_u32 *enough)
{
    while (!at_load(enough, RELAXED)) {
        sleep_ns(600 * PIRN_US); /* its P is taken: the others are ready */
        pirn_yield();
    }
}

static void stop_and_start_without_threads(void)
{
    pirn_wg wg = {0};
    at_u32 enough = {0};
    pirn_metrics_v1 m;
    fail_threads_from(4);
    CHECK_EQ(pirn_start(&(pirn_config){.procs = 2}), 0);
    for (int i = 0; i < 3; i++) {
        pirn_wg_go(&wg, block_plainly_often, &enough);
    }
    for (int64_t until = now_ns() + 400 * PIRN_MS; now_ns() < until;) {
        CHECK(world_stop(now_ns() + 20 * PIRN_SEC));
        world_start();
        sleep_ns(PIRN_MS);
    }
    CHECK_EQ(pirn_metrics(&m), 0);
    CHECK_GT(m.retaken, 0);
    at_store(&enough, 1, RELAXED);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_procs(0), 2);
    recount(0);
    CHECK_EQ(pirn_stop(), 0);
}

TEST_ATTR(stops, .timeout = 60)
{
    CHECK_EQ(count_in_stderr(stop_and_start_without_threads, "pirn: cannot make a thread"), 1);
}

/* --- who makes threads waits for a goroutine --------------------------------------------------------- */

static int fds[2];
static at_u32 holding, told, effective;

static void holds_what_is_needed(void)
{
    CHECK_EQ(pthread_mutex_lock(&needed), 0);
    at_store(&holding, 1, RELAXED);
    while (!at_load(&told, RELAXED)) {
    }
    CHECK_EQ(pthread_mutex_unlock(&needed), 0);
}

static void reads(void)
{
    char byte;
    CHECK_EQ(read(fds[0], &byte, 1), 1);
}

/* A P waits for a thread. True: that of the holder has the higher number, so it is one too many first. */
static bool holder_will_retire(void)
{
    bool waits, retires;
    int64_t until = now_ns() + 20 * PIRN_SEC;
    do {
        CHECK_LT(now_ns(), until);
        sleep_ns(PIRN_MS);
        lock(&sched.lock);
        waits = sched.want_m;
        retires = waits && sched.want_m->id == 0;
        unlock(&sched.lock);
    } while (!waits);
    return retires;
}

/* Its P is one too many, and the other waits for a thread, which waits for the holder: that one gets the P. */
static void *takes_its_p(void *arg)
{
    bool retires = holder_will_retire();
    pirn_procs(1);
    struct p *its = at_load(&sched.allp[1], RELAXED);
    for (int64_t until = now_ns() + 20 * PIRN_SEC;
         retires && at_load(&its->status, RELAXED) != P_RETIRED; sleep_ns(PIRN_MS)) {
        CHECK_LT(now_ns(), until);
    }
    at_add(&effective, retires, RELAXED);
    at_store(&told, 1, RELAXED);
    return arg;
}

TEST_ATTR(made_by_one_that_waits, .timeout = 90)
{
    if (TEST_TSAN) {
        SKIP("ThreadSanitizer puts signals off until a call that it knows: no preemption");
    }
    CHECK_EQ(pipe(fds), 0);
    for (int round = 0; round < 100 && at_load(&effective, RELAXED) < 3; round++) {
        pirn_wg wg = {0};
        pthread_t t;
        at_store(&holding, 0, RELAXED);
        at_store(&told, 0, RELAXED);
        CHECK_EQ(pirn_start(&(pirn_config){.procs = 2}), 0);
        pirn_wg_go(&wg, holds_what_is_needed);
        while (!at_load(&holding, RELAXED)) {
            sleep_ns(PIRN_MS);
        }
        for (int i = 0; i < 6; i++) {
            pirn_wg_go(&wg, reads); /* each keeps the thread that it gets */
        }
        int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
        CHECK_EQ(real(&t, NULL, takes_its_p, NULL), 0);
        CHECK_EQ(pthread_join(t, NULL), 0);
        CHECK_EQ(write(fds[1], "123456", 6), 6);
        pirn_wg_wait(&wg);
        recount(0);
        CHECK_EQ(pirn_stop(), 0);
    }
    CHECK_GE(at_load(&effective, RELAXED), 1);
}
