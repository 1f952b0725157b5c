/* SPDX-License-Identifier: MIT */
/* Preemption switched off, and the signal that it uses (HAZARDS 15). */
#include <signal.h>

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
