/* SPDX-License-Identifier: MIT */
/*
 * Spawn an empty goroutine and wait for it, one after another; op = one spawn
 * and join. spawn_seq says add and done itself, as Go's twin does; spawn_seq_go
 * is the same by pirn_wg_go.
 */
#include "bench.h"

static void done(void *wg)
{
    pirn_wg_done(wg);
}

static void nothing(void *arg)
{
    (void)arg;
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 1000000);
    pirn_wg wg = {0};
    pirn_ns t0 = pirn_now();
    for (int i = 0; i < n; i++) {
        pirn_wg_add(&wg, 1);
        pirn_go(done, &wg);
        pirn_wg_wait(&wg);
    }
    bench_report("spawn_seq", n, t0);

    t0 = pirn_now();
    for (int i = 0; i < n; i++) {
        pirn_wg_go(&wg, nothing, NULL);
        pirn_wg_wait(&wg);
    }
    bench_report("spawn_seq_go", n, t0);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
