/* SPDX-License-Identifier: MIT */
/* What the tests of timers and tickers share. */
#ifndef TESTS_GO_TIMERS_H
#define TESTS_GO_TIMERS_H

#include <pirn.h>

#include "harness.h"

#define PROCS .procs = "1,2,4,16"
#define HOUR (3600 * PIRN_SEC)
#define TOOL (TEST_TSAN || TEST_ASAN)

static inline unsigned next_rand(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

static inline void compute_until(pirn_ns when)
{
    while (pirn_now() < when) {
    }
}

#endif
