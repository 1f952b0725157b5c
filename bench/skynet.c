/* SPDX-License-Identifier: MIT */
/*
 * Skynet: a 10-ary tree with 1,000,000 leaves, a goroutine a node, a channel an
 * inner node. Prints ns a leaf, then the peak RSS in bytes as skynet_rss.
 */
#include "bench.h"

static void skynet(pirn_chan(int64_t) c, int64_t num, int64_t size, int64_t div)
{
    if (size == 1) {
        pirn_chan_send(c, num);
        return;
    }
    pirn_chan(int64_t) rc = pirn_chan_make(int64_t, 0);
    int64_t sum = 0;
    for (int64_t i = 0; i < div; i++) {
        pirn_go(skynet, rc, num + i * (size / div), size / div, div);
    }
    for (int64_t i = 0; i < div; i++) {
        sum += pirn_chan_get(rc);
    }
    pirn_chan_release(rc);
    pirn_chan_send(c, sum);
}

static int run(void *arg)
{
    (void)arg;
    int64_t n = bench_int("N", 1000000);
    pirn_chan(int64_t) c = pirn_chan_make(int64_t, 0);
    pirn_ns t0 = pirn_now();
    pirn_go(skynet, c, 0, n, 10);
    int64_t sum = pirn_chan_get(c);
    bench_report("skynet", (int)n, t0);
    bench_value("skynet_rss", (double)bench_memory("VmHWM"));
    pirn_chan_release(c);
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
