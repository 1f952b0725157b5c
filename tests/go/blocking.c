/* SPDX-License-Identifier: MIT */
/* Code that may block its thread, and says so (conformance 63, 65, 67; HAZARDS 30). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "go/busy.h"

static int fds[2];
static atomic_int entered, returned;

static void make_pipe(void)
{
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    atomic_store(&entered, 0);
    atomic_store(&returned, 0);
}

static void reads(void)
{
    char byte;
    uint64_t me = pirn_id();
    pirn_blocking_begin();
    atomic_fetch_add(&entered, 1);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    pirn_blocking_end();
    CHECK_EQ(pirn_id(), me);
    atomic_fetch_add(&returned, 1);
}

static void write_bytes(int n)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(write(fds[1], "x", 1), 1);
}

/* --- short and long --------------------------------------------------------------------------- */

static void short_calls(int n)
{
    uint64_t me = pirn_id();
    for (int i = 0; i < n; i++) {
        pirn_blocking_begin();
        long parent = getppid();
        pirn_blocking_end();
        CHECK_GE(parent, 0);
        CHECK_EQ(pirn_id(), me);
        if (i % 100 == 0)
            pirn_yield();
    }
}

TEST_RUN_ATTR(short_ones, PROCS)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, short_calls, TEST_TSAN ? 1000 : 20000);
    pirn_wg_wait(&wg);
}

/* About as long as the others are willing to wait: leaving and retaking meet. */
static void calls_of_all_lengths(int n)
{
    for (int i = 0; i < n; i++) {
        pirn_blocking_begin();
        plain_sleep(20 * PIRN_US * (1 + i * 7 % 40));
        pirn_blocking_end();
        for (int k = 0; k < i % 4; k++)
            pirn_yield();
        atomic_fetch_add(&returned, 1);
    }
}

TEST_RUN_ATTR(all_lengths, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    int n = TEST_TSAN ? 50 : 300, callers = 16 + 2 * pirn_procs(0);
    for (int i = 0; i < callers; i++)
        pirn_wg_go(&wg, calls_of_all_lengths, n);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&returned), callers * n);
    CHECK_GT(retaken(), 0);
}

/* As many as there are Ps are in the call at once, and main still goes on: one has lost its P. */
TEST_RUN_ATTR(long_ones, PROCS)
{
    int n = pirn_procs(0);
    for (int round = 0; round < 10; round++) {
        pirn_wg wg = {0};
        uint64_t before = retaken();
        make_pipe();
        for (int i = 0; i < n; i++)
            pirn_wg_go(&wg, reads);
        YIELD_UNTIL(atomic_load(&entered) == n);
        for (int i = 0; i < 100; i++)
            pirn_yield();
        CHECK_EQ(atomic_load(&returned), 0);
        CHECK_GT(retaken(), before);
        write_bytes(n);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&returned), n);
        close(fds[0]);
        close(fds[1]);
    }
}

/* --- leaving ---------------------------------------------------------------------------------- */

/* Nobody else has work: the P is still there, and nobody had taken it. */
TEST_RUN_ATTR(leave_with_the_old_p, PROCS)
{
    uint64_t before = retaken();
    pid_t tid = gettid();
    for (int i = 0; i < 20; i++) {
        pirn_blocking_begin();
        plain_sleep(i * PIRN_MS);
        pirn_blocking_end();
        CHECK_EQ(gettid(), tid);
    }
    CHECK_EQ(retaken(), before);
}

static void yields_until_stop(void)
{
    while (!atomic_load(&stop_loops))
        pirn_yield();
}

/* Its P was taken by others, which have ended since: it finds an idle one. */
TEST_RUN_ATTR(leave_with_an_idle_p, PROCS)
{
    for (int round = 0; round < 10; round++) {
        pirn_wg wg = {0};
        uint64_t before = retaken();
        make_pipe();
        atomic_store(&stop_loops, 0);
        for (int i = 0; i < 2 * pirn_procs(0); i++)
            pirn_wg_go(&looping, yields_until_stop);
        pirn_wg_go(&wg, reads);
        YIELD_UNTIL(atomic_load(&entered) == 1 && retaken() > before);
        end_loops();
        write_bytes(1);
        pirn_wg_wait(&wg);
        close(fds[0]);
        close(fds[1]);
    }
}

/* All Ps are with loops: it queues, until one of them is stopped. */
TEST_RUN_ATTR(leave_and_queue, PROCS, .timeout = 60)
{
    needs_preemption();
    for (int round = 0; round < 5; round++) {
        pirn_wg wg = {0};
        uint64_t taken = retaken();
        make_pipe();
        pirn_wg_go(&wg, reads);
        YIELD_UNTIL(atomic_load(&entered) == 1);
        start_loops(2 * pirn_procs(0));
        SLEEP_UNTIL(retaken() > taken);
        await_preempted(2);
        CHECK_EQ(atomic_load(&returned), 0);
        write_bytes(1);
        pirn_wg_wait(&wg);
        end_loops();
        close(fds[0]);
        close(fds[1]);
    }
}

/* --- results (67) ----------------------------------------------------------------------------- */

/* The result and the errno of a call belong together, inside and after the end. */
static void results(int n)
{
    char byte;
    for (int i = 0; i < n; i++) {
        ssize_t r = 0;
        int inside = 0, want = 0;
        pirn_blocking_begin();
        switch (i % 4) {
        case 0: r = read(-1, &byte, 1), want = EBADF; break;
        case 1: r = read(fds[0], &byte, 1), want = EAGAIN; break;
        case 2: r = open("/no/such/file", O_RDONLY), want = ENOENT; break;
        case 3: plain_sleep(i % 3 * PIRN_MS / 4), errno = 0; break;
        }
        inside = errno;
        pirn_blocking_end();
        CHECK_EQ(errno, want);
        CHECK_EQ(inside, want);
        CHECK_EQ(r, want ? -1 : 0);
        pirn_yield();
    }
}

TEST_RUN_ATTR(result_and_errno, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    CHECK_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    for (int i = 0; i < 8; i++)
        pirn_wg_go(&wg, results, TEST_TSAN ? 100 : 400);
    pirn_wg_wait(&wg);
}

/* --- many ------------------------------------------------------------------------------------- */

#define READERS 64
static atomic_ulong work[2];

static void computes(int i)
{
    while (!atomic_load_explicit(&stop_loops, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&work[i], 1, memory_order_relaxed);
        if (TEST_TSAN)
            pirn_yield();
    }
}

TEST_RUN_ATTR(many_readers_while_two_compute, .slow = true, PROCS, .timeout = 60)
{
    pirn_wg wg = {0};
    make_pipe();
    for (int i = 0; i < 2; i++)
        pirn_wg_go(&looping, computes, i);
    for (int i = 0; i < READERS; i++)
        pirn_wg_go(&wg, reads);
    SLEEP_UNTIL(atomic_load(&entered) == READERS);
    for (int i = 0; i < 2; i++) {
        unsigned long before = atomic_load(&work[i]);
        SLEEP_UNTIL(atomic_load(&work[i]) > before);
    }
    CHECK_EQ(atomic_load(&returned), 0);
    CHECK_GT(retaken(), 0);
    write_bytes(READERS);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&returned), READERS);
    end_loops();
}
