/* SPDX-License-Identifier: MIT */
/*
 * Skynet: a 10-ary tree with 1,000,000 leaves, a goroutine a node. A child
 * writes into its slot of its parent's array, and a wait group says when all
 * have. Prints ns a leaf, then the peak RSS in bytes as skynet_wg_rss.
 */
#include "bench.h"

static void skynet(int64_t *out, int64_t num, int64_t size)
{
    if (size == 1) {
        *out = num;
        return;
    }
    pirn_wg wg = {0};
    int64_t part[10], sum = 0;
    for (int i = 0; i < 10; i++) {
        pirn_wg_go(&wg, skynet, &part[i], num + i * (size / 10), size / 10);
    }
    pirn_wg_wait(&wg);
    for (int i = 0; i < 10; i++) {
        sum += part[i];
    }
    *out = sum;
}

static int run(void *arg)
{
    (void)arg;
    int64_t n = bench_int("N", 1000000), sum = 0;
    pirn_ns t0 = pirn_now();
    skynet(&sum, 0, n);
    bench_report("skynet_wg", (int)n, t0);
    bench_value("skynet_wg_rss", (double)bench_memory("VmHWM"));
    if (sum != n * (n - 1) / 2) {
        fprintf(stderr, "wrong sum\n");
        return 1;
    }
    return 0;
}

int main(void)
{
    return bench_main(run);
}
