/* SPDX-License-Identifier: MIT */
/* Preemption switched off, the time slice, and the signal that preemption uses (HAZARDS 15). */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "go/busy.h"

/* --- switched off ----------------------------------------------------------------------------- */

static atomic_int ran;

static void runs(void)
{
    atomic_store(&ran, 1);
}

static pirn_ns cpu_now(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Whether a goroutine that is ready gets its turn while main computes on the only P. */
static int computes_beside_ready(void *arg)
{
    (void)arg;
    atomic_store(&ran, 0);
    pirn_go(runs);
    for (pirn_ns until = cpu_now() + 20 * SLICE; cpu_now() < until;) {
    }
    int result = atomic_load(&ran);
    CHECK_EQ(preempted() > 0, result);
    return result;
}

TEST(switched_off)
{
    needs_preemption();
    pirn_config config = {.procs = 1, .flags = PIRN_F_NO_PREEMPT};
    CHECK_EQ(pirn_run_config(&config, computes_beside_ready, NULL), 0);
    config.flags = 0;
    CHECK_EQ(pirn_run_config(&config, computes_beside_ready, NULL), 1);
}

TEST_ATTR(switched_off_from_outside, .env = "PIRN_DEBUG=preempt=off")
{
    pirn_config config = {.procs = 1};
    CHECK_EQ(pirn_run_config(&config, computes_beside_ready, NULL), 0);
}

/* --- the time slice --------------------------------------------------------------------------- */

static pirn_ns process_cpu(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* How often two loops on one P are stopped in so much of the process's CPU time. main sleeps meanwhile, and
 * seldom wakes: the loops are what takes it. */
static int stops_in_cpu_time(void *arg)
{
    pirn_ns *time = arg;
    start_loops(2);
    await_preempted(2); /* both have begun */
    uint64_t from = preempted();
    pirn_ns begun = process_cpu();
    while (process_cpu() - begun < *time)
        CHECK_EQ(pirn_sleep(*time / 4), 0);
    /* in 1,000 seconds, by what it really took */
    pirn_ns rate = (pirn_ns)(preempted() - from) * 1000 * PIRN_SEC / (process_cpu() - begun);
    end_loops();
    *time = rate;
    return 0;
}

static pirn_ns stops_with_slice(pirn_ns slice, int slices)
{
    pirn_config config = {.procs = 1, .time_slice = slice};
    pirn_ns time = slices * slice;
    CHECK_EQ(pirn_run_config(&config, stops_in_cpu_time, &time), 0);
    return time;
}

/* Counted in CPU time, a busy machine is as good as an idle one. */
TEST_ATTR(slice_counts, .timeout = 120)
{
    needs_preemption();
    pirn_ns often = stops_with_slice(10 * PIRN_MS, 40);
    pirn_ns seldom = stops_with_slice(100 * PIRN_MS, 12);
    printf("in 1,000 s of CPU time: %lld stops with 10 ms, %lld with 100 ms\n", (long long)often,
           (long long)seldom);
    CHECK_GT(seldom, 0);
    CHECK_GE(often, 3 * seldom);
}

/* Alone on its P, with nobody who waits to run, a loop is let be. */
static int computes_alone(void *arg)
{
    (void)arg;
    uint64_t before = preempted();
    for (pirn_ns until = cpu_now() + 30 * SLICE; cpu_now() < until;) {
        for (volatile int i = 0; i < 100000; i++) {
        }
    }
    CHECK_EQ(preempted(), before);
    return 0;
}

TEST_ATTR(lone_loop_is_let_be, .timeout = 60)
{
    needs_preemption();
    pirn_config config = {.procs = 1};
    CHECK_EQ(pirn_run_config(&config, computes_alone, NULL), 0);
}

static int two_loops_for_a_while(void *arg)
{
    start_loops(2);
    await_preempted(10);
    end_loops();
    return arg != NULL;
}

static void runs_with_slice(void *slice)
{
    pirn_config config = {.procs = 1, .time_slice = *(pirn_ns *)slice};
    CHECK_EQ(pirn_run_config(&config, two_loops_for_a_while, NULL), 0);
}

/* One that the kernel's clock can't measure: it is said, once, and the loops are stopped all the same. */
TEST_ATTR(slice_too_short, .timeout = 60)
{
    static const char notice[] = "pirn: a time slice of 1000 us is too short for the kernel";
    needs_preemption();
    pirn_ns slice = PIRN_MS;
    CHECK_EQ(test_in_child(runs_with_slice, &slice), 0);
    CHECK(strstr(test_said, notice) == test_said);
    CHECK(strstr(strstr(test_said, "too short") + 1, "too short") == NULL);
    slice = 8 * PIRN_MS;
    CHECK_EQ(test_in_child(runs_with_slice, &slice), 0);
    CHECK(strstr(test_said, "too short") == NULL);
}

/* --- the signal ------------------------------------------------------------------------------- */

static atomic_int own_signals;

static void notes_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&own_signals, 1);
}

static int signalled_beside_loops(void *arg)
{
    (void)arg;
    start_loops(2 * pirn_procs(0));
    await_preempted(10);
    for (int i = 1; i <= 20; i++) {
        CHECK_EQ(kill(getpid(), SIGURG), 0);
        SLEEP_UNTIL(atomic_load(&own_signals) >= i);
    }
    await_preempted(10);
    end_loops();
    return 0;
}

/* A handler of the program's gets those that somebody else sends, and the loops are still stopped. */
TEST_ATTR(own_handler_is_called, PROCS, .timeout = 60)
{
    needs_preemption();
    struct sigaction sa = {.sa_handler = notes_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGURG, &sa, NULL), 0);
    CHECK_EQ(pirn_run(signalled_beside_loops, NULL), 0);
}

static int stopped_by_another(void *arg)
{
    struct sigaction sa;
    (void)arg;
    start_loops(2 * pirn_procs(0));
    await_preempted(20);
    end_loops();
    CHECK_EQ(sigaction(SIGURG, NULL, &sa), 0);
    CHECK(sa.sa_handler == SIG_DFL);
    return 0;
}

TEST_ATTR(another_signal, PROCS, .timeout = 60)
{
    needs_preemption();
    pirn_config config = {.preempt_signal = SIGUSR2};
    CHECK_EQ(pirn_run_config(&config, stopped_by_another, NULL), 0);
}
