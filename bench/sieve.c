/* SPDX-License-Identifier: MIT */
/* Prime sieve, a chain of goroutines over unbuffered channels; op = the whole run (ns). */
#include "bench.h"

static void filter(pirn_chan(int64_t) in, pirn_chan(int64_t) out, int64_t p)
{
    for (;;) {
        int64_t v = pirn_chan_get(in);
        if (v % p != 0) {
            pirn_chan_send(out, v);
        }
    }
}

static void generate(pirn_chan(int64_t) out)
{
    for (int64_t i = 2;; i++) {
        pirn_chan_send(out, i);
    }
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 2000);
    pirn_ns t0 = pirn_now();
    pirn_chan(int64_t) c = pirn_chan_make(int64_t, 0);
    pirn_go(generate, c);
    int64_t p = 0;
    for (int i = 0; i < n; i++) {
        p = pirn_chan_get(c);
        pirn_chan(int64_t) d = pirn_chan_make(int64_t, 0);
        pirn_go(filter, c, d, p);
        c = d;
    }
    bench_report("sieve", 1, t0);
    if (n == 2000 && p != 17389) {
        fprintf(stderr, "wrong prime\n");
        return 1;
    }
    return 0;
}

int main(void)
{
    return bench_main(run);
}
