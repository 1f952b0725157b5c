/* SPDX-License-Identifier: MIT */
/* Spawn n empty goroutines, then wait for all; op = one spawn. */
#include "bench.h"

static void done(void *wg)
{
    pirn_wg_done(wg);
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 1000000);
    pirn_wg wg = {0};
    pirn_ns t0 = pirn_now();
    pirn_wg_add(&wg, n);
    for (int i = 0; i < n; i++) {
        pirn_go(done, &wg);
    }
    pirn_wg_wait(&wg);
    bench_report("spawn_batch", n, t0);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
