/* SPDX-License-Identifier: MIT */
/* How a thread outside the runtime knows that the goroutines wait. */
#ifndef TESTS_GO_IDLE_H
#define TESTS_GO_IDLE_H

#include <sched.h>

#include <pirn.h>

#include "harness.h"

/*
 * Until every thread of the runtime has gone to sleep at the same time: then a goroutine that had
 * begun has ended or waits. For a caller that is no goroutine, with nobody else who makes any ready.
 */
static inline void wait_until_idle(void)
{
    pirn_metrics_v1 m;
    for (;;) {
        CHECK_EQ(pirn_metrics(&m), 0);
        if (m.threads > 0 && m.threads_idle == m.threads)
            return;
        sched_yield();
    }
}

#endif
