/* SPDX-License-Identifier: MIT */
/*
 * Stopping the world (conformance 45, 48, 49, 56, 61): from world_stop to world_start nobody runs but the one
 * who asked, whatever they did; then all go on, and every P is accounted for.
 */
#include <pthread.h>
#include <stdio.h>

#include "go/busy.h"
#include "sched/sched.h"

/* --- those who are to be stopped: each counts its rounds ------------------------------------------- */

#define MOST 96

/* C11's atomics, not pirn's: those of the chaos flavour pause the thread, which then loses its P as one that
 * blocks, and runs on. */
static atomic_ulong rounds[MOST];
static void (*kind_of[MOST])(int);
static int nworkers;
static pirn_wg workers;
static atomic_uint enough;

static void count(int i)
{
    atomic_store_explicit(&rounds[i], atomic_load_explicit(&rounds[i], memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static bool go_on(void)
{
    return !atomic_load_explicit(&enough, memory_order_relaxed);
}

static void computes(int i)
{
    while (go_on())
        count(i);
}

static void yields(int i)
{
    for (; go_on(); count(i))
        pirn_yield();
}

static void sleeps(int i)
{
    for (; go_on(); count(i))
        pirn_sleep(200 * PIRN_US);
}

/* Blocks its thread; it may come back without a P, and is held up at its next call: one round at most. */
static void blocks(int i)
{
    for (; go_on(); count(i)) {
        plain_sleep(300 * PIRN_US);
        pirn_yield();
    }
}

static void blocks_announced(int i)
{
    for (; go_on(); count(i)) {
        pirn_blocking_begin();
        plain_sleep(300 * PIRN_US);
        pirn_blocking_end();
    }
}

static void *sleeps_plainly(void *arg)
{
    plain_sleep(300 * PIRN_US);
    return arg;
}

static void blocks_in_a_function(int i)
{
    for (; go_on(); count(i))
        pirn_blocking(sleeps_plainly, NULL);
}

static void is_locked(int i)
{
    pirn_lock_thread();
    for (; go_on(); count(i)) {
        pirn_yield();
        pirn_sleep(100 * PIRN_US);
    }
    pirn_unlock_thread();
}

static void (*const kinds[])(int) = {
    yields, sleeps, blocks, blocks_announced, blocks_in_a_function, is_locked, computes};
#define KINDS ((int)(TEST_TSAN ? ARRAY_LEN(kinds) - 1 : ARRAY_LEN(kinds))) /* no preemption there */

static void add_worker(void (*fn)(int))
{
    CHECK_LT(nworkers, MOST);
    kind_of[nworkers] = fn;
    pirn_wg_go(&workers, fn, nworkers);
    nworkers++;
}

/* So many of each kind. */
static void start_workers(int each)
{
    atomic_store_explicit(&enough, 0, memory_order_relaxed);
    nworkers = 0;
    for (int i = 0; i < each * KINDS; i++)
        add_worker(kinds[i % KINDS]);
}

static void end_workers(void)
{
    atomic_store_explicit(&enough, 1, memory_order_relaxed);
    pirn_wg_wait(&workers);
}

static void note_rounds(uint64_t *out)
{
    for (int i = 0; i < nworkers; i++)
        out[i] = atomic_load_explicit(&rounds[i], memory_order_relaxed);
}

/* On a thread of its own, or in a goroutine beside them. */
static void await_all(const uint64_t *since)
{
    for (int i = 0; i < nworkers; i++) {
        for (pirn_ns until = plain_now() + LONG;
             atomic_load_explicit(&rounds[i], memory_order_relaxed) == since[i];) {
            CHECK_LT(plain_now(), until);
            pirn_id() ? (void)pirn_sleep(PIRN_MS) : plain_sleep(PIRN_MS);
        }
    }
}

/* --- the Ps ----------------------------------------------------------------------------------------- */

struct ps {
    uint32_t idle, running, stopped, leaving, nprocs, npidle;
};

static struct ps count_ps(void)
{
    struct ps n = {0};
    enter();
    lock(&sched.lock);
    for (uint32_t i = 0; i < at_load(&sched.nallp, RELAXED); i++) {
        struct p *pp = at_load(&sched.allp[i], RELAXED);
        uint32_t status = at_load(&pp->status, RELAXED);
        n.idle += status == P_IDLE;
        n.running += status == P_RUNNING;
        n.stopped += status == P_STOPPED;
        n.leaving += (at_load(&pp->retire, RELAXED) & P_RETIRE_PROCS) != 0;
    }
    n.nprocs = at_load(&sched.nprocs, RELAXED);
    n.npidle = at_load(&sched.npidle, RELAXED);
    unlock(&sched.lock);
    leave();
    return n;
}

static void check_stopped(void)
{
    struct ps n = count_ps();
    CHECK_EQ(n.running, getm() != NULL);
    CHECK_EQ(n.idle, n.npidle);
    CHECK_EQ(n.idle + n.running + n.stopped - n.leaving, n.nprocs);
}

static void check_started(void)
{
    struct ps n = count_ps();
    CHECK_EQ(n.stopped, 0);
    CHECK_EQ(n.idle, n.npidle);
    CHECK_EQ(n.idle + n.running - n.leaving, n.nprocs);
}

/* --- one stop --------------------------------------------------------------------------------------- */

static at_u32 stoppers_inside;

static void compute(pirn_ns ns)
{
    for (pirn_ns until = plain_now() + ns; plain_now() < until;) {
    }
}

/* A thread that waits in the emulator for a lock of that looks as if it blocked: it loses its P, and runs on for
 * half a slice at most. Goroutine 1 may wait for a thread meanwhile. */
static bool some_run_on(void)
{
    bool some = false;
    enter();
    lock(&sched.lock);
    for (struct m *mp = sched.allm; mp; mp = mp->all)
        some |= at_load(&mp->attention, RELAXED) & M_LOST && mp->curg && mp->curg->id != 1;
    unlock(&sched.lock);
    leave();
    return some;
}

/* Nothing moves for so long. Returns how long it took to stop. */
static pirn_ns stop_for(pirn_ns ns, void (*pass)(pirn_ns))
{
    uint64_t before[MOST], after[MOST];
    pirn_ns from = plain_now();
    CHECK(world_stop(from + LONG));
    pirn_ns took = plain_now() - from;
    while (test_emulated() && some_run_on()) {
        CHECK_LT(plain_now(), from + LONG);
        plain_sleep(PIRN_MS);
    }
    note_rounds(before);
    CHECK_EQ(at_add(&stoppers_inside, 1, RELAXED), 0);
    pass(ns);
    note_rounds(after);
    check_stopped();
    at_add(&stoppers_inside, (uint32_t)-1, RELAXED);
    world_start();
    for (int i = 0; i < nworkers; i++)
        CHECK_LE(after[i] - before[i], kind_of[i] == blocks ? 1 : 0);
    return took;
}

static void stop_often(int n, pirn_ns ns, void (*pass)(pirn_ns))
{
    uint64_t since[MOST];
    for (int i = 0; i < n; i++) {
        note_rounds(since);
        stop_for(ns, pass);
        if (i % 8 == 0) {
            await_all(since);
            check_started();
        }
    }
    note_rounds(since);
    await_all(since);
}

/* --- by a goroutine, by a thread -------------------------------------------------------------------- */

TEST_RUN_ATTR(by_a_goroutine, PROCS, .timeout = 90)
{
    start_workers(2);
    stop_often(40, PIRN_MS, compute);
    end_workers();
}

/* It is not stopped itself, though its slice is over and others wait. */
TEST_RUN_ATTR(by_a_goroutine_for_long, PROCS, .timeout = 90)
{
    start_workers(1);
    stop_often(6, 40 * PIRN_MS, compute);
    end_workers();
}

/* Nor is its P taken when it blocks. */
TEST_RUN_ATTR(by_a_goroutine_that_blocks, PROCS, .timeout = 90)
{
    start_workers(1);
    stop_often(6, 40 * PIRN_MS, plain_sleep);
    end_workers();
}

/* Nor does it have to give it up when there are to be fewer. */
static void change_procs_meanwhile(pirn_ns ns)
{
    static at_u32 i;
    pirn_procs(1 + (int)at_add(&i, 5, RELAXED) % 8);
    compute(ns);
}

TEST_RUN_ATTR(by_a_goroutine_that_changes_procs, PROCS, .timeout = 90)
{
    start_workers(1);
    stop_often(20, PIRN_MS, change_procs_meanwhile);
    end_workers();
    check_started();
}

static void *stops_outside(void *arg)
{
    void (*pass)(pirn_ns) = *(void (**)(pirn_ns))arg;
    stop_often(20, 2 * PIRN_MS, pass);
    return NULL;
}

static void stop_outside(void (*pass)(pirn_ns))
{
    pthread_t t;
    start_workers(2);
    CHECK_EQ(pthread_create(&t, NULL, stops_outside, &pass), 0);
    pirn_yield();
    pthread_join(t, NULL);
    end_workers();
    check_started();
}

TEST_RUN_ATTR(by_a_thread, PROCS, .timeout = 90)
{
    stop_outside(compute);
}

TEST_RUN_ATTR(by_a_thread_that_changes_procs, PROCS, .timeout = 90)
{
    stop_outside(change_procs_meanwhile);
}

/* All sleep already; what wakes meanwhile waits. */
static void *stops_sleepers(void *arg)
{
    for (int i = 0; i < 20; i++)
        stop_for(20 * PIRN_MS, plain_sleep);
    return arg;
}

static void runs_once(int i)
{
    pirn_sleep(5 * i * PIRN_MS);
    count(i);
}

TEST_RUN_ATTR(all_asleep, PROCS, .timeout = 90)
{
    pthread_t t;
    nworkers = 0;
    for (int i = 0; i < 64; i++)
        add_worker(runs_once);
    CHECK_EQ(pthread_create(&t, NULL, stops_sleepers, NULL), 0);
    pirn_wg_wait(&workers);
    for (int i = 0; i < 64; i++)
        CHECK_EQ(atomic_load_explicit(&rounds[i], memory_order_relaxed), 1);
    pthread_join(t, NULL);
    check_started();
}

/* --- by many ---------------------------------------------------------------------------------------- */

static void stops_sometimes(int n)
{
    for (int i = 0; i < n; i++) {
        stop_for(100 * PIRN_US, compute);
        if (i % 3 == 0)
            pirn_yield();
    }
}

static void *stops_sometimes_outside(void *arg)
{
    for (int i = 0; i < *(int *)arg; i++) {
        stop_for(100 * PIRN_US, compute);
        plain_sleep(500 * PIRN_US);
    }
    return NULL;
}

TEST_RUN_ATTR(by_many, PROCS, .timeout = 90)
{
    int n = 20;
    uint64_t since[MOST];
    pthread_t t[3];
    pirn_wg stoppers = {0};
    start_workers(1);
    for (int i = 0; i < 6; i++)
        pirn_wg_go(&stoppers, stops_sometimes, n);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, stops_sometimes_outside, &n), 0);
    pirn_wg_wait(&stoppers);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    note_rounds(since);
    await_all(since);
    end_workers();
    check_started();
}

/* --- 1000 stops, 1000 changes of the number of Ps, loops (45) ---------------------------------------- */

static void stops_only(int n)
{
    for (int i = 0; i < n; i++) {
        CHECK(world_stop(plain_now() + LONG));
        world_start();
        pirn_yield();
    }
}

static void changes_procs(int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_GT(pirn_procs(1 + i % 8), 0);
        pirn_yield();
    }
}

TEST_RUN_ATTR(stops_and_procs, PROCS, .timeout = 120)
{
    int n = TEST_TSAN || TEST_ASAN ? 100 : 1000;
    pirn_wg wg = {0};
    nworkers = 0;
    add_worker(TEST_TSAN ? yields : computes);
    pirn_wg_go(&wg, stops_only, n);
    pirn_wg_go(&wg, changes_procs, n);
    pirn_wg_wait(&wg);
    end_workers();
    check_started();
}

/* Another thread wants fewer while a goroutine has stopped it: the P of that one is not taken away. */
static void *changes_procs_outside(void *arg)
{
    while (go_on()) {
        pirn_procs(1);
        plain_sleep(PIRN_MS);
        pirn_procs(8);
        plain_sleep(PIRN_MS);
    }
    return arg;
}

TEST_RUN_ATTR(procs_from_outside, PROCS, .timeout = 60)
{
    pthread_t t;
    start_workers(1);
    CHECK_EQ(pthread_create(&t, NULL, changes_procs_outside, NULL), 0);
    for (int i = 0; i < 30; i++) {
        CHECK(world_stop(plain_now() + LONG));
        for (pirn_ns until = plain_now() + 5 * PIRN_MS; plain_now() < until;)
            pirn_procs(0); /* in and out of the runtime */
        world_start();
        pirn_yield();
    }
    end_workers();
    pthread_join(t, NULL);
    check_started();
}

/* Nor by what sysmon has found out about CPUs, when the program has just said what it wants. */
TEST_RUN(procs_meanwhile_are_kept)
{
    int n = pirn_procs(0);
    CHECK(world_stop(plain_now() + LONG));
    CHECK_EQ(pirn_procs(n + 3), n);
    enter();
    p_resize(n + 1, NULL, true);
    leave();
    world_start();
    CHECK_EQ(pirn_procs(0), n + 3);
}

/* --- where they go on (48) --------------------------------------------------------------------------- */

static atomic_uint thread_of[MOST];

static void computes_on(int i)
{
    for (; go_on(); count(i))
        atomic_store_explicit(&thread_of[i], (uint32_t)gettid(), memory_order_relaxed);
}

static void note_threads(uint32_t *out)
{
    uint64_t since[MOST];
    note_rounds(since);
    await_all(since);
    for (int i = 0; i < nworkers; i++)
        out[i] = atomic_load_explicit(&thread_of[i], memory_order_relaxed);
}

/* One that computes stays on its thread, with its cache: Go's bound is three of four. */
TEST_RUN_ATTR(stay_on_their_threads, PROCS, .timeout = 90)
{
    uint32_t before[MOST], after[MOST];
    int stayed = 0, all = 0;
    needs_preemption();
    atomic_store_explicit(&enough, 0, memory_order_relaxed);
    nworkers = 0;
    for (int i = 0; i < 4; i++)
        add_worker(computes_on);
    for (int i = 0; i < 10; i++) {
        note_threads(before);
        CHECK(world_stop(plain_now() + LONG));
        world_start();
        note_threads(after);
        for (int j = 0; j < nworkers; j++, all++)
            stayed += before[j] == after[j];
    }
    end_workers();
    CHECK_GE(4 * stayed, 3 * all);
}

/* --- threads that end, threads that are locked (49, 61) ---------------------------------------------- */

static void ends_its_thread(void)
{
    pirn_lock_thread();
    pirn_yield();
    pirn_exit();
}

static void ends_threads(int n)
{
    for (int i = 0; i < n; i++) {
        pirn_wg wg = {0};
        pirn_wg_go(&wg, ends_its_thread);
        pirn_wg_go(&wg, ends_its_thread);
        pirn_wg_wait(&wg);
        count(0);
    }
}

TEST_RUN_ATTR(threads_end, PROCS, .timeout = 90)
{
    pirn_wg wg = {0};
    nworkers = 1;
    pirn_wg_go(&wg, ends_threads, 200);
    while (atomic_load_explicit(&rounds[0], memory_order_relaxed) < 200) {
        stop_for(200 * PIRN_US, compute);
        pirn_yield(); /* else, with one P, they wait for its slices to end; without preemption for ever */
    }
    pirn_wg_wait(&wg);
    check_started();
}

static void locks_at_once(void)
{
    pirn_lock_thread();
    pirn_unlock_thread();
    pirn_lock_thread();
}

static int two_lock(void *arg)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, locks_at_once);
    pirn_wg_go(&wg, locks_at_once);
    CHECK(world_stop(plain_now() + LONG));
    world_start();
    pirn_lock_thread(); /* goroutine 1: it moves to another thread */
    CHECK(world_stop(plain_now() + LONG));
    world_start();
    pirn_wg_wait(&wg);
    return arg == NULL;
}

TEST_ATTR(locks_and_stops, PROCS, .timeout = 90)
{
    for (int i = 0; i < 100; i++)
        CHECK_EQ(pirn_run(two_lock, NULL), 1);
}

/* --- ticks of the clock anywhere --------------------------------------------------------------------- */

TEST_RUN_ATTR(quickly, PROCS, .timeout = 60)
{
    pirn_ns until = plain_now() + 2 * PIRN_SEC;
    uint64_t since[MOST];
    start_workers(1);
    note_rounds(since);
    while (plain_now() < until) {
        CHECK(world_stop(plain_now() + LONG));
        world_start();
    }
    await_all(since);
    end_workers();
    check_started();
}

/* --- a P without a thread ------------------------------------------------------------------------------ */

/* The thread that it waited for could not be made, just when it was to stop. */
TEST_ATTR(given_up_meanwhile, .procs = "2")
{
    CHECK_EQ(pirn_start(NULL), 0);
    lock(&sched.lock);
    struct p *pp = pidle_get_locked();
    sched.stopped = true;
    at_store(&pp->retire, P_RETIRE_WORLD, RELAXED);
    p_put_back_locked(pp);
    CHECK_EQ(at_load(&pp->status, RELAXED), P_STOPPED);
    CHECK_EQ(at_load(&pp->retire, RELAXED), 0);
    unlock(&sched.lock);
    world_start();
    check_started();
    CHECK_EQ(pirn_stop(), 0);
}

/* --- in time, or not ---------------------------------------------------------------------------------- */

enum { STOPS = 20 };

static pirn_ns took[STOPS];

static int by_length(const void *a, const void *b)
{
    pirn_ns x = *(const pirn_ns *)a, y = *(const pirn_ns *)b;
    return (x > y) - (x < y);
}

/* Both Ps are in use: there is something to be stopped. */
static void *measures(void *arg)
{
    uint64_t since[MOST];
    for (int i = 0; i < STOPS; i++) {
        note_rounds(since);
        await_all(since);
        while (count_ps().running < 2)
            plain_sleep(PIRN_MS);
        took[i] = stop_for(PIRN_MS, compute);
    }
    qsort(took, STOPS, sizeof took[0], by_length);
    return arg;
}

static void measure(const char *what, void (*fn)(int))
{
    pthread_t t;
    atomic_store_explicit(&enough, 0, memory_order_relaxed);
    nworkers = 0;
    for (int i = 0; i < 4; i++)
        add_worker(fn);
    CHECK_EQ(pthread_create(&t, NULL, measures, NULL), 0);
    pirn_blocking_begin();
    pthread_join(t, NULL);
    pirn_blocking_end();
    printf("%s: stopped within %.2f ms, %.2f at worst\n", what, (double)took[STOPS / 2] / 1e6,
           (double)took[STOPS - 1] / 1e6);
    CHECK_LE(took[STOPS / 2], 20 * PIRN_MS);
    end_workers();
}

TEST_RUN_ATTR(soon, .procs = "2", .alone = true, .timeout = 60)
{
    needs_preemption();
    measure("loops", computes);
    measure("threads that block", blocks);
}

/* Another has stopped it for long: who comes later gives up in time. */
static atomic_bool came_later;

static void *comes_later(void *arg)
{
    pirn_ns from = plain_now();
    CHECK(!world_stop(from + 20 * PIRN_MS));
    CHECK_GE(plain_now(), from + 20 * PIRN_MS);
    atomic_store(&came_later, true);
    return arg;
}

TEST_RUN_ATTR(stopped_by_another, PROCS)
{
    pthread_t t;
    start_workers(1);
    CHECK(world_stop(plain_now() + LONG));
    CHECK_EQ(pthread_create(&t, NULL, comes_later, NULL), 0);
    for (pirn_ns until = plain_now() + LONG; !atomic_load(&came_later);) {
        CHECK_LT(plain_now(), until);
        plain_sleep(PIRN_MS);
    }
    check_stopped(); /* it left it alone */
    CHECK_EQ(pthread_join(t, NULL), 0);
    world_start();
    end_workers();
    check_started();
}

/* One that can't be stopped: that is told, and all go on. */
static void *gives_up(void *arg)
{
    uint64_t since[MOST];
    for (int i = 0; i < 10; i++) {
        pirn_ns from = plain_now();
        while (atomic_load_explicit(&rounds[0], memory_order_relaxed) == 0)
            plain_sleep(PIRN_MS);
        CHECK(!world_stop(from + 20 * PIRN_MS));
        CHECK_GE(plain_now(), from + 20 * PIRN_MS);
        note_rounds(since);
        await_all(since);
        check_started();
    }
    atomic_store_explicit(&enough, 1, memory_order_relaxed);
    return arg;
}

static int beside_one_that_cant_be_stopped(void *arg)
{
    pthread_t t;
    nworkers = 0;
    add_worker(computes);
    CHECK_EQ(pthread_create(&t, NULL, gives_up, NULL), 0);
    pirn_wg_wait(&workers);
    pthread_join(t, NULL);
    return arg != NULL;
}

TEST_ATTR(too_late, PROCS, .timeout = 60, .env = "PIRN_DEBUG=preempt=off")
{
    CHECK_EQ(pirn_run(beside_one_that_cant_be_stopped, NULL), 0);
}
