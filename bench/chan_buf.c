/* SPDX-License-Identifier: MIT */
/* Buffered channel, capacity 128, P producers and P consumers (1 and 4); op = one message. */
#include "bench.h"

static void produce(pirn_chan(int64_t) c, int n)
{
    for (int i = 0; i < n; i++) {
        pirn_chan_send(c, i);
    }
}

static void consume(pirn_chan(int64_t) c)
{
    while (pirn_chan_recv(c, NULL)) {
    }
}

static void pass(const char *name, int p, int n)
{
    pirn_chan(int64_t) c = pirn_chan_make(int64_t, 128);
    pirn_wg producers = {0}, consumers = {0};
    pirn_ns t0 = pirn_now();
    for (int g = 0; g < p; g++) {
        pirn_wg_go(&producers, produce, c, n / p);
        pirn_wg_go(&consumers, consume, c);
    }
    pirn_wg_wait(&producers);
    pirn_chan_close(c);
    pirn_wg_wait(&consumers);
    bench_report(name, n, t0);
    pirn_chan_release(c);
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 4000000);
    pass("chan_buf_1p1c", 1, n);
    pass("chan_buf_4p4c", 4, n);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
