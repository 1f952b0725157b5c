/* SPDX-License-Identifier: MIT */
/* Two goroutines that yield to each other; op = one switch. */
#include "bench.h"

static void yielder(int n)
{
    for (int i = 0; i < n; i++) {
        pirn_yield();
    }
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 5000000);
    pirn_wg wg = {0};
    pirn_ns t0 = pirn_now();
    for (int g = 0; g < 2; g++) {
        pirn_wg_go(&wg, yielder, n);
    }
    pirn_wg_wait(&wg);
    bench_report("yield", 2 * n, t0);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
