/* SPDX-License-Identifier: MIT */
/* Goroutines that keep their threads busy or blocked, and how to know what the scheduler did. */
#ifndef TESTS_GO_BUSY_H
#define TESTS_GO_BUSY_H

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define LONG (25 * PIRN_SEC) /* a bounded wait: far more than it can take */
#define SLICE (10 * PIRN_MS) /* the default */

/* Yields until a condition holds; a failure if it never does. */
#define YIELD_UNTIL(cond)                                                                          \
    for (pirn_ns until_ = pirn_now() + LONG; !(cond);) {                                           \
        CHECK_LT(pirn_now(), until_);                                                              \
        pirn_yield();                                                                              \
    }

/* The same with sleeps: others are to be stopped for it. */
#define SLEEP_UNTIL(cond)                                                                          \
    for (pirn_ns until_ = pirn_now() + LONG; !(cond);) {                                           \
        CHECK_LT(pirn_now(), until_);                                                              \
        pirn_sleep(PIRN_MS);                                                                       \
    }

static inline pirn_metrics_v1 metrics(void)
{
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_metrics(&m), 0);
    return m;
}

static inline uint64_t preempted(void)
{
    return metrics().preempted;
}

static inline uint64_t retaken(void)
{
    return metrics().retaken;
}

static inline void needs_preemption(void)
{
    if (TEST_TSAN)
        SKIP("ThreadSanitizer puts signals off until a call that it knows: no preemption");
}

static inline pirn_ns read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (pirn_ns)t.tv_sec * PIRN_SEC + t.tv_nsec;
}

/* The clock of pirn_now(), without a call into pirn. */
static inline pirn_ns plain_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Computes for so long in CPU time, without a call into pirn: by the clock it may be over before the thread has had
 * a CPU, where many want one. */
static inline void compute_for(pirn_ns ns)
{
    for (pirn_ns until = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
         read_clock(CLOCK_THREAD_CPUTIME_ID) < until;) {
    }
}

/* Blocks the thread, whatever signals come. */
static inline void plain_sleep(pirn_ns ns)
{
    struct timespec left = {.tv_sec = ns / PIRN_SEC, .tv_nsec = ns % PIRN_SEC};
    while (nanosleep(&left, &left)) {
    }
}

/* The long forms of tests, as tests/stress has them. */
static inline bool long_form(void)
{
    const char *seconds = getenv("PIRN_STRESS_SECONDS");
    return getenv("PIRN_STRESS") || (seconds && atoi(seconds) >= 60);
}

static inline bool thread_exists(pid_t tid)
{
    return syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

/* --- call-free loops -------------------------------------------------------------------------- */

static atomic_int stop_loops;
static pirn_wg looping;

static inline void loop_without_calls(void)
{
    while (!atomic_load_explicit(&stop_loops, memory_order_relaxed)) {
    }
}

static inline void start_loops(int n)
{
    atomic_store(&stop_loops, 0);
    for (int i = 0; i < n; i++)
        pirn_wg_go(&looping, loop_without_calls);
}

static inline void end_loops(void)
{
    atomic_store(&stop_loops, 1);
    pirn_wg_wait(&looping);
}

/* Until so many times a goroutine has been stopped in the midst of computing. */
static inline void await_preempted(uint64_t n)
{
    uint64_t from = preempted();
    SLEEP_UNTIL(preempted() >= from + n);
}

#endif
