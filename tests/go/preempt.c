/* SPDX-License-Identifier: MIT */
/*
 * A goroutine that computes for ever does not stop the others, whatever code it runs (conformance 54 to
 * 56; HAZARDS 28, 29). What it keeps meanwhile is in preempt_state.c, its locks in preempt_locks.c.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "go/busy.h"

/* --- beside those that wait (R4) -------------------------------------------------------------- */

TEST_RUN_ATTR(loop_beside_sleeper, PROCS, .timeout = 60)
{
    needs_preemption();
    uint64_t before = preempted();
    start_loops(pirn_procs(0));
    for (int i = 0; i < 30; i++) {
        pirn_ns due = pirn_now() + 2 * PIRN_MS;
        CHECK_EQ(pirn_sleep(2 * PIRN_MS), 0);
        CHECK_GE(pirn_now(), due);
    }
    SLEEP_UNTIL(preempted() > before);
    end_loops();
}

static int pair[2];

/* Asks, and waits for the answer; a thread of the program's own. */
static void *asks(void *arg)
{
    for (int i = 0; i < 20; i++) {
        char byte = (char)i;
        struct pollfd answer = {.fd = pair[1], .events = POLLIN};
        CHECK_EQ(write(pair[1], &byte, 1), 1);
        CHECK_EQ(poll(&answer, 1, LONG / PIRN_MS), 1);
        CHECK_EQ(read(pair[1], &byte, 1), 1);
        CHECK_EQ(byte, (char)(i + 1));
    }
    return arg;
}

TEST_RUN_ATTR(loop_beside_reader, PROCS, .timeout = 60)
{
    needs_preemption();
    pthread_t t;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    uint64_t before = preempted();
    start_loops(pirn_procs(0));
    CHECK_EQ(pthread_create(&t, NULL, asks, NULL), 0);
    for (int i = 0; i < 20; i++) {
        char byte;
        CHECK_EQ(pirn_select(PIRN_READABLE(pair[0]), PIRN_AFTER(LONG)), 0);
        CHECK_EQ(read(pair[0], &byte, 1), 1);
        byte++;
        CHECK_EQ(write(pair[0], &byte, 1), 1);
    }
    SLEEP_UNTIL(preempted() > before); /* 20 rounds may be over before all Ps loop */
    end_loops();
    pthread_join(t, NULL);
}

/* --- loops of all kinds (55) ------------------------------------------------------------------ */

static void empty_loop(void)
{
    for (;;)
        __asm__ volatile("");
}

static int beside_empty_loops(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2 * pirn_procs(0); i++)
        pirn_go(empty_loop);
    await_preempted(10);
    return 0;
}

/* They end with the process only: the runtime leaves them behind. */
TEST_ATTR(empty_loops, PROCS, .timeout = 60, .once = true)
{
    needs_preemption();
    pirn_config config = {.stop_grace = 50 * PIRN_MS};
    CHECK_EQ(pirn_run_config(&config, beside_empty_loops, NULL), 0);
}

/* In a function that has no frame. */
__attribute__((visibility("hidden"))) void frameless_loop(atomic_int *until);
#if defined(__x86_64__)
__asm__(".text\n"
        "frameless_loop:\n"
        ".cfi_startproc\n"
        "1: cmpl $0, (%rdi)\n"
        "   je 1b\n"
        "   ret\n"
        ".cfi_endproc\n");
#else
__asm__(".text\n"
        "frameless_loop:\n"
        ".cfi_startproc\n"
        "1: ldr w1, [x0]\n"
        "   cbz w1, 1b\n"
        "   ret\n"
        ".cfi_endproc\n");
#endif

static void runs_frameless(void)
{
    frameless_loop(&stop_loops);
}

static void in_malloc(void)
{
    unsigned char *kept[64] = {NULL};
    for (size_t i = 0; !atomic_load(&stop_loops); i++) {
        size_t at = i * 7 % 64, size = 1 + i * 131 % 3000;
        if (kept[at])
            CHECK_EQ(*kept[at], at);
        free(kept[at]);
        kept[at] = malloc(size);
        CHECK(kept[at] != NULL);
        memset(kept[at], (int)at, size);
    }
    for (int i = 0; i < 64; i++)
        free(kept[i]);
}

static void in_snprintf(void)
{
    char text[128];
    int a, b;
    double x;
    for (int i = 0; !atomic_load(&stop_loops); i = (i + 1) % 100000) {
        CHECK_GT(snprintf(text, sizeof text, "%d %.3f %d", i, (double)i / 8, ~i), 0);
        CHECK_EQ(sscanf(text, "%d %lf %d", &a, &x, &b), 3);
        CHECK(a == i && b == ~i && (int)(x * 8 + 0.5) == i);
    }
}

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

static void in_qsort(void)
{
    static const int n = 2000;
    int numbers[2000];
    for (unsigned seed = 1; !atomic_load(&stop_loops);) {
        for (int i = 0; i < n; i++)
            numbers[i] = (int)((seed = seed * 1103515245 + 12345) >> 4);
        qsort(numbers, (size_t)n, sizeof numbers[0], by_value);
        for (int i = 1; i < n; i++)
            CHECK_LE(numbers[i - 1], numbers[i]);
    }
}

static void are_stopped(void (*loop)(void))
{
    needs_preemption();
    atomic_store(&stop_loops, 0);
    for (int i = 0; i < 2 * pirn_procs(0); i++)
        pirn_wg_go(&looping, loop);
    await_preempted(20);
    end_loops();
}

TEST_RUN_ATTR(loops_without_calls, PROCS, .timeout = 60)
{
    are_stopped(loop_without_calls);
}

TEST_RUN_ATTR(frameless_loops, PROCS, .timeout = 60)
{
    are_stopped(runs_frameless);
}

TEST_RUN_ATTR(loops_in_malloc, PROCS, .timeout = 60)
{
    are_stopped(in_malloc);
}

TEST_RUN_ATTR(loops_in_snprintf, PROCS, .timeout = 60)
{
    are_stopped(in_snprintf);
}

TEST_RUN_ATTR(loops_in_qsort, PROCS, .timeout = 60)
{
    are_stopped(in_qsort);
}

/* Most of its stack is one frame (56). */
static void in_a_large_frame(void)
{
    volatile unsigned char bytes[160 << 10];
    for (size_t i = 0; !atomic_load_explicit(&stop_loops, memory_order_relaxed); i++) {
        bytes[i * 4093 % sizeof bytes] = (unsigned char)i;
        CHECK_EQ(bytes[i * 4093 % sizeof bytes], (unsigned char)i);
    }
}

TEST_RUN_ATTR(loops_in_large_frames, PROCS, .timeout = 60)
{
    are_stopped(in_a_large_frame);
}

/* All at once. */
TEST_RUN_ATTR(loops_in_libraries, PROCS, .timeout = 60)
{
    static void (*const loops[])(void) = {in_malloc, in_snprintf, in_qsort};
    needs_preemption();
    for (int i = 0; i < 2 * pirn_procs(0) + 3; i++)
        pirn_wg_go(&looping, loops[i % 3]);
    await_preempted(40);
    end_loops();
}

/* --- an end to them (56) ---------------------------------------------------------------------- */

static atomic_ulong rounds;

/* A goroutine that runs when main returns is stopped at its next call. */
static void computes_and_calls(void)
{
    for (;;) {
        compute_for(20 * PIRN_MS);
        atomic_fetch_add(&rounds, 1);
        pirn_id();
    }
}

static int returns_beside_loops(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2 * pirn_procs(0); i++)
        pirn_go(computes_and_calls);
    await_preempted(5);
    return 42;
}

TEST_ATTR(main_returns_beside_loops, PROCS, .timeout = 60)
{
    needs_preemption();
    for (int i = 0; i < 3; i++) {
        pirn_config config = {.stop_grace = LONG};
        CHECK_EQ(pirn_run_config(&config, returns_beside_loops, NULL), 42);
        unsigned long then = atomic_load(&rounds);
        plain_sleep(50 * PIRN_MS);
        CHECK_EQ(atomic_load(&rounds), then);
    }
}

/* The number of Ps changes under loops that call nothing. */
TEST_RUN_ATTR(procs_change_beside_loops, PROCS, .timeout = 60)
{
    needs_preemption();
    uint64_t before = preempted();
    int now = pirn_procs(0);
    start_loops(16);
    for (int i = 0; i < 12; i++) {
        int next = 1 + i * 5 % 8;
        CHECK_EQ(pirn_procs(next), now);
        now = next;
        CHECK_EQ(pirn_sleep(PIRN_MS), 0);
    }
    CHECK_GT(preempted(), before);
    end_loops();
}

static atomic_bool got_a_turn;

static void gets_a_turn(void)
{
    atomic_store(&got_a_turn, true);
}

/* More of them than preemption makes threads at once, and main is one: whoever comes after them runs all the
 * same. */
TEST_RUN_ATTR(more_loops_than_threads, .slow = true, .procs = "1,4", .timeout = 120)
{
    needs_preemption();
    start_loops(TEST_SPARE_THREADS(pirn_procs(0)) + 3);
    pirn_go(gets_a_turn);
    start_loops(1); /* the last one is the first to run */
    for (pirn_ns until = plain_now() + 4 * LONG; !atomic_load(&got_a_turn);)
        CHECK_LT(plain_now(), until);
    end_loops();
}

static int never_written[2];

static void reads_for_ever(void)
{
    char byte;
    CHECK_EQ(read(never_written[0], &byte, 1), 0);
}

static int beside_many_that_block(void *arg)
{
    pirn_wg readers = {0};
    (void)arg;
    CHECK_EQ(pipe2(never_written, O_CLOEXEC), 0);
    for (int i = 0; i < 12; i++)
        pirn_wg_go(&readers, reads_for_ever);
    SLEEP_UNTIL(metrics().threads > 12);
    start_loops(pirn_procs(0));
    await_preempted(10);
    end_loops();
    close(never_written[1]);
    pirn_wg_wait(&readers);
    close(never_written[0]);
    return 0;
}

/* Threads that block are no reason to let one compute for ever. */
TEST_ATTR(loop_beside_many_that_block, .procs = "1,2,4", .timeout = 60)
{
    needs_preemption();
    pirn_config config = {.max_threads = 40};
    CHECK_EQ(pirn_run_config(&config, beside_many_that_block, NULL), 0);
}
