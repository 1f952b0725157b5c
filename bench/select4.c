/* SPDX-License-Identifier: MIT */
/*
 * Select over 4 channels of which one is ready. select4_nopark: one goroutine
 * fills a channel of capacity 1, then selects; op = send and select.
 * select4_park: a sender feeds 4 unbuffered channels in turn, the select parks;
 * op = one message.
 */
#include "bench.h"

typedef pirn_chan(int64_t) chan;

static int64_t select4(chan *c)
{
    int64_t a, b, d, e;
    switch (pirn_select(PIRN_RECV(c[0], &a), PIRN_RECV(c[1], &b), PIRN_RECV(c[2], &d),
                        PIRN_RECV(c[3], &e))) {
    case 0: return a;
    case 1: return b;
    case 2: return d;
    default: return e;
    }
}

static void feed(chan *c, int n)
{
    for (int i = 0; i < n; i++) {
        pirn_chan_send(c[i & 3], i);
    }
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 2000000);
    chan c[4], u[4];
    for (int i = 0; i < 4; i++) {
        c[i] = pirn_chan_make(int64_t, 1);
        u[i] = pirn_chan_make(int64_t, 0);
    }
    int64_t sum = 0;
    pirn_ns t0 = pirn_now();
    for (int i = 0; i < n; i++) {
        pirn_chan_send(c[i & 3], i);
        sum += select4(c);
    }
    bench_report("select4_nopark", n, t0);

    pirn_go(feed, u, n);
    t0 = pirn_now();
    for (int i = 0; i < n; i++) {
        sum += select4(u);
    }
    bench_report("select4_park", n, t0);
    if (sum != (int64_t)n * (n - 1)) {
        fprintf(stderr, "wrong sum\n");
        return 1;
    }
    return 0;
}

int main(void)
{
    return bench_main(run);
}
