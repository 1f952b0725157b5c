/* SPDX-License-Identifier: MIT */
/* Unbuffered channel ping-pong between two goroutines; op = one round trip. */
#include "bench.h"

static void echo(pirn_chan(int64_t) a, pirn_chan(int64_t) b)
{
    int64_t v;
    while (pirn_chan_recv(a, &v)) {
        pirn_chan_send(b, v);
    }
    pirn_chan_close(b);
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 1000000);
    pirn_chan(int64_t) a = pirn_chan_make(int64_t, 0);
    pirn_chan(int64_t) b = pirn_chan_make(int64_t, 0);
    pirn_go(echo, a, b);
    pirn_ns t0 = pirn_now();
    for (int i = 0; i < n; i++) {
        pirn_chan_send(a, i);
        pirn_chan_recv(b, NULL);
    }
    bench_report("pingpong", n, t0);
    pirn_chan_close(a);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
