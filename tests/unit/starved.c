/* SPDX-License-Identifier: MIT */
/*
 * sysmon's watch for work that waits beside an idle P. The scheduler has no such state, as far as is known: so
 * it is told a lie here, that there is an idle P beside the only one.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "harness.h"
#include "sched/sched.h"

static void nothing(void)
{
}

static uint64_t starved(void)
{
    pirn_metrics_v1 m;
    CHECK_EQ(pirn_metrics(&m), 0);
    return m.starved;
}

static int one_waits(void *arg)
{
    pirn_ns late = pirn_deadline(10 * PIRN_SEC);
    (void)arg;
    CHECK_EQ(starved(), 0);
    pirn_go(nothing); /* on the ring, when the next one is put before it */
    pirn_go(nothing);
    pirn_ns begun = pirn_now();
    at_add(&sched.npidle, 1, SEQ_CST);
    while (starved() == 0 && pirn_now() < late) { /* never lets the other one run */
    }
    at_add(&sched.npidle, (uint32_t)-1, SEQ_CST);
    CHECK_GE(starved(), 1);
    CHECK_GE(pirn_now() - begun, 10 * PIRN_MS);
    pirn_yield();
    return 0;
}

static void run_it(void *arg)
{
    pirn_config config = {.procs = 1, .flags = PIRN_F_NO_PREEMPT};
    CHECK_EQ(pirn_run_config(&config, one_waits, arg), 0);
}

/* Builds with debug checks end there. */
TEST(work_beside_an_idle_p)
{
    int status = test_in_child(run_it, NULL);
#if PIRN_DEBUG_CHECKS
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGABRT);
    CHECK(strstr(test_said, "fatal error: sysmon: work has waited on P 0 for ") == test_said);
#else
    CHECK_EQ(status, 0);
#endif
}
