/* SPDX-License-Identifier: MIT */
/*
 * pirn_blocking_begin and pirn_blocking_end with nothing between them; op = both.
 * Least of batches, as in Go's twin, which has to take a difference: a system call
 * with what corresponds around it, less the same without.
 */
#include "bench.h"

enum { BATCHES = 50 };

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 50000000) / BATCHES;
    pirn_ns best = PIRN_NEVER;
    for (int b = 0; b < BATCHES; b++) {
        pirn_ns t0 = pirn_now();
        for (int i = 0; i < n; i++) {
            pirn_blocking_begin();
            pirn_blocking_end();
        }
        pirn_ns t = pirn_now() - t0;
        best = t < best ? t : best;
    }
    bench_per_op("blocking", n, best);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
