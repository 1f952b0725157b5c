/* SPDX-License-Identifier: MIT */
/*
 * The scheduler, as a program sees it: what Go's tests assert of Gosched, parallelism,
 * NumGoroutine, big GOMAXPROCS, the current goroutine over thread switches, ids, stack reuse
 * (conformance 38, 39, 44, 46, 50, 97, 155). Elsewhere: run queues and steal order 40-43 in
 * unit/runq.c and unit/walk.c, CPU quota 47 in unit/cpu.c and go/cpus.c, stop-the-world 45, 48 and 49 in
 * unit/world.c (stops_and_procs, stay_on_their_threads, threads_end). A sleep of all that is broken (51) is
 * in time.c, nearer_than_an_hour. What Go's table of semaphores must not do, become slow when many wait
 * (53), is in long_queues.c: pirn has no table, each object has its own queue. Coroutines (52) it has none.
 * The lists of 156 are in unit/waitq.c; lock-free stacks it has none. Lock ranks (157): unit/lock.c.
 */
#include <fcntl.h>
#include <pirn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define SLOW_TOOL (TEST_TSAN || TEST_ASAN)
#define LONG (20 * PIRN_SEC)     /* a bounded wait: far more than it can take */
#define FEW (TEST_TSAN ? 20 : 1) /* a new goroutine takes ThreadSanitizer a millisecond */
#define MOST_LIVE (TEST_TSAN ? 700 : 20000)

/* Yields until a condition holds; a failure if it never does. */
#define YIELD_UNTIL(cond)                                                                          \
    for (pirn_ns until_ = pirn_now() + LONG; !(cond);) {                                           \
        CHECK_LT(pirn_now(), until_);                                                              \
        pirn_yield();                                                                              \
    }

static atomic_int count, flag, locked;

/* --- progress (38) -------------------------------------------------------------------------------- */

static void poll_flag(pirn_wg *wg)
{
    int lock = atomic_load(&locked);
    if (lock)
        pirn_lock_thread();
    while (!atomic_load(&flag))
        pirn_yield();
    if (lock)
        pirn_unlock_thread();
    pirn_wg_done(wg);
}

static void yield_progress(int rounds)
{
    pirn_wg wg = {0};
    for (int i = 0; i < rounds; i++) {
        atomic_store(&flag, 0);
        pirn_wg_add(&wg, 3);
        for (int k = 0; k < 3; k++)
            pirn_go(poll_flag, &wg);
        for (int k = 0; k < i % 20; k++)
            pirn_yield();
        atomic_store(&flag, 1);
        pirn_wg_wait(&wg);
    }
}

/* A goroutine that polls with yields sees what others do, whoever starts first. */
TEST_RUN_ATTR(yield_progress, PROCS)
{
    yield_progress(100);
}

/* The same if those that poll, and then the one that is waited for too, are locked to threads. */
TEST_RUN_ATTR(yield_progress_locked, PROCS)
{
    atomic_store(&locked, 1);
    yield_progress(20);
    pirn_lock_thread();
    yield_progress(20);
    pirn_unlock_thread();
}

static void set_flag(void)
{
    atomic_store(&flag, 1);
}

TEST_RUN_ATTR(yield_lets_others_run, PROCS)
{
    for (int i = 0; i < 1000 / FEW; i++) {
        atomic_store(&flag, 0);
        pirn_go(set_flag);
        YIELD_UNTIL(atomic_load(&flag));
    }
}

/* --- parallelism (39) ------------------------------------------------------------------------------- */

static atomic_uint turn;

/* Busy without a call into pirn: each waits for its turn, so all must be running at once. */
static void take_turns(unsigned me, unsigned n)
{
    for (unsigned i = 0; i < 3; i++) {
        while (atomic_load(&turn) != n * i + me)
            sched_yield(); /* the kernel's: there may be fewer CPUs than Ps */
        atomic_store(&turn, n * i + me + 1);
    }
}

TEST_RUN_ATTR(parallelism, PROCS)
{
    unsigned n = (unsigned)pirn_procs(0);
    pirn_wg wg = {0};
    for (int round = 0; round < 10; round++) {
        atomic_store(&turn, 0);
        for (unsigned i = 0; i < n; i++)
            pirn_wg_go(&wg, take_turns, i, n);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&turn), 3 * n);
    }
}

/* --- counting (44), ids (97) -------------------------------------------------------------------------- */

static pirn_wg gate, all;

static void wait_at_gate(void)
{
    atomic_fetch_add(&count, 1);
    pirn_wg_wait(&gate);
}

TEST_RUN_ATTR(num_goroutines, PROCS)
{
    CHECK_EQ(pirn_num_goroutines(), 1);
    for (int round = 0; round < 20 / FEW; round++) {
        atomic_store(&count, 0);
        pirn_wg_add(&gate, 1);
        for (int i = 1; i <= 500; i++) {
            pirn_wg_go(&all, wait_at_gate);
            CHECK_EQ(pirn_num_goroutines(), 1 + i); /* those that have not run yet count too */
        }
        YIELD_UNTIL(atomic_load(&count) == 500);
        CHECK_EQ(pirn_num_goroutines(), 501);
        pirn_wg_done(&gate);
        pirn_wg_wait(&all);
        YIELD_UNTIL(pirn_num_goroutines() == 1); /* a done is not quite the end */
        pirn_metrics_v1 m;
        CHECK_EQ(pirn_metrics(&m), 0);
        CHECK_EQ(m.goroutines, 1);
        CHECK_EQ(m.spawned, 1 + 500u * (unsigned)(round + 1));
    }
}

static int count_and_panic(void *arg)
{
    pirn_wg_add(&gate, 1);
    for (int i = 1; i < *(int *)arg; i++)
        pirn_go(wait_at_gate);
    if (*(int *)arg % 2) /* else some of them may not have run yet */
        YIELD_UNTIL(atomic_load(&count) == *(int *)arg - 1);
    dprintf(STDERR_FILENO, "%d goroutines\n", pirn_num_goroutines());
    pirn_wg_add(&gate, -2);
    return 0;
}

static void run_count_and_panic(void *arg)
{
    pirn_run(count_and_panic, arg);
}

/* How many the report of a panic shows, and says that are like them. */
static int goroutines_in_dump(void)
{
    int shown = 0, more = 0;
    for (const char *line = test_said; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        unsigned long long id;
        char state[2];
        shown += sscanf(line, "goroutine %llu [%1s", &id, state) == 2;
        int alike;
        if (sscanf(line, " and %d more: ", &alike) == 1)
            more += alike;
    }
    return shown + more;
}

/* The number is that of the goroutines in a dump of all. */
TEST_ATTR(num_goroutines_of_the_dump, PROCS)
{
    static const int numbers[] = {1, 2, 7, 40, 99, 100, 101, 102, 103, 350};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int n = numbers[i], said;
        CHECK_NE(test_in_child(run_count_and_panic, &n), 0);
        CHECK(strstr(test_said, "\npanic: sync: negative WaitGroup counter\n") != NULL);
        CHECK_EQ(sscanf(test_said, "%d goroutines", &said), 1);
        CHECK_EQ(said, n);
        CHECK_EQ(goroutines_in_dump(), n);
    }
}

static void nothing(void)
{
}

static void spawn_until_flag(void)
{
    pirn_wg wg = {0};
    while (!atomic_load(&flag)) {
        for (int i = 0; i < 20; i++)
            pirn_wg_go(&wg, nothing);
        pirn_wg_wait(&wg);
    }
}

/* While others come and go the number is not exact, but who asks is one of them. */
TEST_RUN_ATTR(num_goroutines_in_a_storm, PROCS)
{
    for (int i = 0; i < 4; i++)
        pirn_wg_go(&all, spawn_until_flag);
    for (int i = 0; i < 20000 / FEW; i++) {
        CHECK_GE(pirn_num_goroutines(), 1);
        if (i % 16 == 0)
            pirn_yield();
    }
    atomic_store(&flag, 1);
    pirn_wg_wait(&all);
    YIELD_UNTIL(pirn_num_goroutines() == 1);
}

static void not_one(void)
{
    CHECK_GT(pirn_id(), 1);
}

static int main_is_one(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    CHECK_EQ(pirn_id(), 1);
    for (int i = 0; i < 100; i++)
        pirn_wg_go(&wg, not_one);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_id(), 1);
    return 0;
}

TEST_ATTR(main_id, PROCS)
{
    CHECK_EQ(pirn_id(), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(pirn_run(main_is_one, NULL), 0);
        CHECK_EQ(pirn_id(), 0);
    }
}

#define IDS (100000 / FEW)
static uint64_t ids[IDS];

static void note_id(int i)
{
    ids[i] = pirn_id();
}

static void note_ids(int from, int n)
{
    pirn_wg wg = {0};
    ids[from] = pirn_id();
    for (int i = 1; i < n; i++) {
        pirn_wg_go(&wg, note_id, from + i);
        if (i % 500 == 0)
            pirn_wg_wait(&wg);
    }
    pirn_wg_wait(&wg);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

TEST_RUN_ATTR(ids_are_unique, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, note_ids, i * (IDS / 10), IDS / 10);
    pirn_wg_wait(&wg);
    qsort(ids, IDS, sizeof ids[0], by_value);
    CHECK_GT(ids[0], 1);
    for (int i = 1; i < IDS; i++)
        CHECK_LT(ids[i - 1], ids[i]);
}

/* --- the number of Ps (46) ------------------------------------------------------------------------------ */

static void yield_some(int n)
{
    for (int i = 0; i < n; i++)
        pirn_yield();
    atomic_fetch_add(&count, 1);
}

static int big(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    CHECK_EQ(pirn_procs(0), 1024);
    for (int i = 0; i < 5000 / FEW; i++)
        pirn_wg_go(&wg, yield_some, 5);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&count), 5000 / FEW);
    return 0;
}

TEST(big_procs)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 1024}, big, NULL), 0);
}

TEST_RUN(big_procs_later)
{
    pirn_wg wg = {0};
    for (int round = 0; round < 3; round++) {
        atomic_store(&count, 0);
        pirn_procs(1024);
        for (int i = 0; i < 3000 / FEW; i++)
            pirn_wg_go(&wg, yield_some, 5);
        CHECK_EQ(pirn_procs(1), 1024);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&count), 3000 / FEW);
    }
}

static uint64_t metrics_procs(void)
{
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_metrics(&m), 0);
    return m.procs;
}

TEST_RUN(procs_changes)
{
    int now = pirn_procs(0);
    CHECK_GE(now, 1);
    static const int wanted[] = {3, 1, 1, 16, 2, 1024, 7, 1};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        CHECK_EQ(pirn_procs(wanted[i]), now);
        now = wanted[i];
        CHECK_EQ(pirn_procs(0), now);
        CHECK_EQ(pirn_procs(-5), now);
        CHECK_EQ(metrics_procs(), now);
        pirn_yield();
        CHECK_EQ(pirn_procs(0), now);
    }
    CHECK_EQ(pirn_procs(100000), 1); /* the most there can be */
    CHECK_EQ(pirn_procs(0), 1024);
}

static void yield_until_flag(void)
{
    while (!atomic_load(&flag)) {
        pirn_yield();
        atomic_fetch_add(&count, 1);
    }
}

/* Ps come and go under goroutines that run: nobody is lost, everybody goes on. */
TEST_RUN_ATTR(procs_changes_under_load, PROCS)
{
    unsigned seed = 1;
    for (int i = 0; i < 20; i++)
        pirn_wg_go(&all, yield_until_flag);
    pirn_wg_go(&all, spawn_until_flag);
    for (int i = 0; i < (TEST_TSAN ? 20 : 200); i++) {
        seed = seed * 1103515245 + 12345;
        int n = 1 + (int)(seed >> 16) % 8;
        pirn_procs(n);
        CHECK_EQ(pirn_procs(0), n);
        int before = atomic_load(&count);
        YIELD_UNTIL(atomic_load(&count) >= before + 20);
    }
    atomic_store(&flag, 1);
    pirn_wg_wait(&all);
}

/* --- who runs (50) --------------------------------------------------------------------------------------- */

static void same_id(int n)
{
    volatile uint64_t mine = pirn_id();
    int local = n;
    CHECK_GT(mine, 1);
    for (int i = 0; i < n; i++) {
        pirn_yield();
        CHECK_EQ(pirn_id(), mine);
        CHECK_EQ(local, n);
    }
}

static void same_id_parking(int n)
{
    uint64_t mine = pirn_id();
    for (int i = 0; i < n; i++) {
        pirn_wg wg = {0};
        pirn_wg_go(&wg, nothing);
        pirn_wg_wait(&wg);
        CHECK_EQ(pirn_id(), mine);
    }
}

static void current(int goroutines, int n)
{
    for (int i = 0; i < goroutines; i++) {
        pirn_wg_go(&all, same_id, n);
        pirn_wg_go(&all, same_id_parking, n);
    }
    for (int i = 0; i < n; i++) {
        CHECK_EQ(pirn_id(), 1);
        pirn_yield();
    }
    pirn_wg_wait(&all);
    CHECK_EQ(pirn_id(), 1);
}

TEST_RUN_ATTR(current_goroutine, PROCS)
{
    current(TEST_TSAN ? 10 : 50, TEST_TSAN ? 50 : SLOW_TOOL ? 200 : 1000);
}

TEST_RUN_ATTR(current_goroutine_move, PROCS, .env = "PIRN_DEBUG=move=1")
{
    current(5, 100);
}

/* With PIRN_DEBUG=move a goroutine comes back on another thread. */
TEST_RUN_ATTR(move_moves, PROCS, .env = "PIRN_DEBUG=move=1")
{
    pid_t last = gettid();
    for (int i = 0; i < 100; i++) {
        pirn_yield();
        pid_t now = gettid();
        CHECK_NE(now, last);
        last = now;
    }
}

/* --- order ------------------------------------------------------------------------------------------------ */

static int order[64];

/* The end of a slice sends whom it meets to the back of the queue: there is none here. */
static const pirn_config one_p = {.procs = 1, .time_slice = PIRN_NEVER};

static void note_order(int i)
{
    order[atomic_fetch_add(&count, 1)] = i;
}

static int spawn_order(void *arg)
{
    int n = *(int *)arg;
    pirn_wg wg = {0};
    for (int i = 0; i < n; i++)
        pirn_wg_go(&wg, note_order, i);
    pirn_wg_wait(&wg);
    return 0;
}

/* On one P the last one spawned runs first, then the others in their order: 4 0 1 2 3. */
TEST(spawn_order_on_one_p)
{
    for (int n = 1; n <= (PIRN_SMALL ? 5 : 64); n += TEST_TSAN ? 7 : 1) { /* fits in a ring */
        atomic_store(&count, 0);
        CHECK_EQ(pirn_run_config(&one_p, spawn_order, &n), 0);
        CHECK_EQ(atomic_load(&count), n);
        CHECK_EQ(order[0], n - 1);
        for (int i = 1; i < n; i++)
            CHECK_EQ(order[i], i - 1);
    }
}

static void yield_in_turn(int me)
{
    for (int i = 0; i < 10; i++) {
        order[atomic_fetch_add(&count, 1) % 64] = me;
        pirn_yield();
    }
}

static int yield_order(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    for (int i = 0; i < 5; i++)
        pirn_wg_go(&wg, yield_in_turn, i);
    pirn_wg_wait(&wg);
    for (int i = 5; i < 50; i++)
        CHECK_EQ(order[i], order[i - 5]); /* round after round */
    return 0;
}

TEST(yield_order_on_one_p)
{
    CHECK_EQ(pirn_run_config(&one_p, yield_order, NULL), 0);
}

/* --- fairness ----------------------------------------------------------------------------------------------- */

static pirn_wg ping[2], pong[2];

/* Two that make each other ready for ever: each goes to the front of the queue every time. */
static void pinger(void)
{
    for (unsigned i = 0;; i++) {
        pirn_wg_add(&ping[(i + 1) & 1], 1);
        pirn_wg_add(&pong[(i + 1) & 1], 1);
        int over = atomic_load(&flag);
        atomic_store(&count, over);
        pirn_wg_done(&ping[i & 1]);
        pirn_wg_wait(&pong[i & 1]);
        if (over)
            return;
    }
}

static void ponger(void)
{
    for (unsigned i = 0;; i++) {
        pirn_wg_wait(&ping[i & 1]);
        int over = atomic_load(&count);
        pirn_wg_done(&pong[i & 1]);
        if (over)
            return;
    }
}

static void ping_pong_against(void (*third)(void))
{
    pirn_wg_add(&ping[0], 1);
    pirn_wg_add(&pong[0], 1);
    if (third)
        pirn_wg_go(&all, third);
    pirn_wg_go(&all, ponger);
    pirn_wg_go(&all, pinger);
    pirn_wg_wait(&all);
}

TEST_RUN_ATTR(ping_pong_does_not_starve, PROCS)
{
    ping_pong_against(set_flag);
}

static void *foreign_flag(void *arg)
{
    (void)arg;
    while (!atomic_load(&turn))
        sched_yield();
    pirn_go(set_flag);
    return NULL;
}

static void set_turn(void)
{
    atomic_store(&turn, 1);
}

/* The third comes through the global queue, when the two are at it already. */
TEST_RUN_ATTR(ping_pong_does_not_starve_the_global_queue, PROCS)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, foreign_flag, NULL), 0);
    ping_pong_against(set_turn);
    pthread_join(t, NULL);
}

TEST_RUN_ATTR(yields_do_not_starve_the_global_queue, PROCS)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, foreign_flag, NULL), 0);
    for (int i = 0; i < 40; i++)
        pirn_wg_go(&all, yield_until_flag);
    set_turn();
    pirn_wg_wait(&all);
    pthread_join(t, NULL);
}

/* A chain of spawns, each in front of the queue, must not keep the others from running. */
static void chain(void)
{
    if (!atomic_load(&flag))
        pirn_wg_go(&all, chain);
}

TEST_RUN_ATTR(spawn_chain_does_not_starve, PROCS)
{
    pirn_wg_go(&all, set_flag);
    pirn_wg_go(&all, chain);
    pirn_wg_wait(&all);
}

/* The spawner computes on; what it has spawned is run by another P, also when waking others for
 * such work has been in vain many times. */
TEST_RUN_ATTR(spawner_computes, .procs = "2,4,16")
{
    pirn_wg wg = {0};
    for (int round = 0; round < (TEST_TSAN ? 5 : 30); round++) {
        for (int i = 0; i < 3000 / FEW; i++) { /* in vain: run at once by the spawner's own P */
            pirn_wg_go(&wg, nothing);
            pirn_wg_wait(&wg);
        }
        atomic_store(&flag, 0);
        pirn_go(set_flag);
        for (pirn_ns until = pirn_now() + PIRN_SEC * (SLOW_TOOL ? 10 : 1); !atomic_load(&flag);) {
            struct timespec t;
            clock_gettime(CLOCK_MONOTONIC, &t); /* no call into pirn */
            CHECK_LT((pirn_ns)t.tv_sec * PIRN_SEC + t.tv_nsec, until);
        }
    }
}

/* --- stacks (155) ---------------------------------------------------------------------------------------------- */

/* Frames with contents, down to `deep` bytes below the first one; everything is checked on the way back. */
__attribute__((noinline)) static long recurse(const char *top, size_t deep, long level)
{
    volatile long frame[8];
    for (int i = 0; i < 8; i++)
        frame[i] = level + i;
    long depth = 1;
    if ((size_t)(top - (const char *)__builtin_frame_address(0)) < deep)
        depth += recurse(top, deep, level + 1);
    else
        for (int i = 0; i < 10; i++)
            pirn_yield();
    if (level % 100 == 0)
        pirn_yield();
    for (int i = 0; i < 8; i++)
        CHECK_EQ(frame[i], level + i);
    return depth;
}

static void go_deep(size_t deep)
{
    CHECK_GT(recurse(__builtin_frame_address(0), deep, 0), 1);
}

TEST_RUN_ATTR(deep_recursion, PROCS)
{
    pirn_wg wg = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++)
            pirn_wg_go(&wg, go_deep,
                       (size_t)170 << 10); /* of 256 KB, of which a quarter is guard */
        pirn_wg_wait(&wg);
    }
}

static void go_very_deep(void *arg)
{
    go_deep((size_t)(TEST_TSAN ? 4 : 60) << 20); /* ThreadSanitizer counts to 65,536 frames */
    pirn_wg_done(arg);
}

TEST_RUN(very_deep_recursion)
{
    pirn_wg wg = {0};
    pirn_wg_add(&wg, 1);
    CHECK_EQ(pirn_spawn(&(pirn_attr){.stack_size = (size_t)64 << 20}, go_very_deep, &wg), 0);
    pirn_wg_wait(&wg);
}

/* 100,000 goroutines in waves, each wave with all of its stacks in use at once, some of them deep. */
TEST_RUN_ATTR(stack_reuse, PROCS)
{
    pirn_wg wg = {0};
    pirn_metrics_v1 m;
    uint64_t most = 0;
    int waves = TEST_TSAN ? 3 : TEST_ASAN ? 40 : 200;
    for (int wave = 0; wave < waves; wave++) {
        atomic_store(&count, 0);
        pirn_wg_add(&gate, 1);
        for (int i = 0; i < 480; i++)
            pirn_wg_go(&all, wait_at_gate);
        for (int i = 0; i < 20; i++)
            pirn_wg_go(&wg, go_deep, (size_t)1 << (9 + i % 8));
        YIELD_UNTIL(atomic_load(&count) == 480);
        pirn_wg_done(&gate);
        pirn_wg_wait(&wg);
        pirn_wg_wait(&all);
        CHECK_EQ(pirn_metrics(&m), 0);
        most = m.stacks > most ? m.stacks : most;
    }
    CHECK_GE(m.spawned, (uint64_t)waves * 500);
    CHECK_LE(most, 501 + 64 * m.procs); /* one wave, and the caches of the Ps */
}

/* All at once. */
TEST_RUN_ATTR(many_parked, PROCS)
{
    pirn_wg_add(&gate, 1);
    for (int i = 0; i < MOST_LIVE; i++)
        pirn_wg_go(&all, wait_at_gate);
    YIELD_UNTIL(atomic_load(&count) == MOST_LIVE);
    CHECK_EQ(pirn_num_goroutines(), MOST_LIVE + 1);
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
}

/* --- exit -------------------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static int exit_at(int depth)
{
    volatile char frame[100];
    frame[0] = (char)depth;
    if (depth > 0)
        return exit_at(depth - 1) + frame[0];
    if (!atomic_load(&flag))
        pirn_exit();
    return 0;
}

static void exit_deep(int depth)
{
    atomic_fetch_add(&count, 1);
    exit_at(depth);
    FAIL("ran on after pirn_exit");
}

TEST_RUN_ATTR(exit_in_nested_calls, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 2000 / FEW; i++)
        pirn_wg_go(&wg, exit_deep, i % 200);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&count), 2000 / FEW);
    YIELD_UNTIL(pirn_num_goroutines() == 1);
}

/* --- errno --------------------------------------------------------------------------------------------------------- */

static int pipe_fds[2];

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* Through a function of pirn's, unless PIRN_NO_ERRNO (no_errno.c). */
TEST(errno_is_a_call)
{
    CHECK(strstr(TEXT(errno), "pirn_errno_location") != NULL);
}

/* errno is right after each call, on whatever thread the yield before it has come back. */
static void provoke(int n, int first)
{
    char byte;
    for (int i = 0; i < n; i++) {
        if ((i + first) % 2) {
            CHECK_EQ(close(-1), -1);
            CHECK_EQ(errno, EBADF);
        } else {
            CHECK_EQ(read(pipe_fds[0], &byte, 1), -1);
            CHECK_EQ(errno, EAGAIN);
        }
        pirn_yield();
        errno = 0;
        CHECK_EQ(errno, 0);
    }
}

static void provoke_all(int goroutines, int n)
{
    CHECK_EQ(pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC), 0);
    for (int i = 0; i < goroutines; i++)
        pirn_wg_go(&all, provoke, n / goroutines, i);
    pirn_wg_wait(&all);
}

TEST_RUN_ATTR(errno_of_the_thread, PROCS)
{
    provoke_all(8, SLOW_TOOL ? 50000 : 200000);
}

TEST_RUN_ATTR(errno_of_the_thread_move, PROCS, .env = "PIRN_DEBUG=move=1")
{
    provoke_all(2, 2000);
}

/* --- floating point -------------------------------------------------------------------------------------------------- */

/* Rounds up from now on; without libm. */
static void round_up(void)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x6000u) | 0x4000u);
    unsigned short cw;
    __asm__ volatile("fnstcw %0" : "=m"(cw));
    cw = (unsigned short)((cw & ~0xc00u) | 0x800u);
    __asm__ volatile("fldcw %0" ::"m"(cw));
#else
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr = (fpcr & ~((uint64_t)3 << 22)) | (uint64_t)1 << 22;
    __asm__ volatile("msr fpcr, %0" ::"r"(fpcr));
#endif
}

/* The nearest to 1/3 is below it as a double, and above it in x87's 64 bits. */
static bool rounds_up(void)
{
    volatile double one = 1, three = 3, third = one / three;
#if defined(__x86_64__)
    volatile long double minus = -1, third87 = minus / three;
    CHECK_EQ(third > 0x1.5555555555555p-2, third87 > -0xa.aaaaaaaaaaaaaabp-5L);
#endif
    return third > 0x1.5555555555555p-2;
}

static void up(void *arg)
{
    CHECK(!rounds_up()); /* inherited from the spawner */
    round_up();
    for (int i = 0; i < 500; i++) {
        CHECK(rounds_up());
        pirn_yield();
    }
    CHECK(rounds_up());
    pirn_wg_done(arg);
}

static void nearest(void *arg)
{
    for (int i = 0; i < 500; i++) {
        CHECK(!rounds_up());
        pirn_yield();
    }
    pirn_wg_done(arg);
}

static void fp_modes(int n)
{
    pirn_wg wg = {0};
    pirn_attr own = {.flags = PIRN_ATTR_FP_MODES};
    for (int i = 0; i < n; i++) {
        pirn_wg_add(&wg, 3);
        CHECK_EQ(pirn_spawn(&own, up, &wg), 0);
        CHECK_EQ(pirn_spawn(NULL, nearest, &wg), 0);
        CHECK_EQ(pirn_spawn(&own, nearest, &wg), 0);
    }
    pirn_wg_wait(&wg);
    CHECK(!rounds_up());
}

/* Its manual says so of all but conversions. */
static void skip_if_rounding_is_not_kept(void)
{
    if (test_on_valgrind())
        SKIP("valgrind always rounds to the nearest");
}

TEST_RUN_ATTR(fp_modes_of_its_own, PROCS)
{
    skip_if_rounding_is_not_kept();
    fp_modes(10);
}

TEST_RUN_ATTR(fp_modes_move, .procs = "1,4", .env = "PIRN_DEBUG=move=1")
{
    skip_if_rounding_is_not_kept();
    fp_modes(1);
}
