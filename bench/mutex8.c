/* SPDX-License-Identifier: MIT */
/*
 * A mutex contended by 8 goroutines with a tiny critical section; op = one lock
 * and unlock. mutex8: nobody yields inside. mutex8_yield: the holder yields
 * inside, so the others really park.
 */
#include "bench.h"

static pirn_mutex mutex;
static int64_t x;

static void add(int n, bool yield)
{
    for (int i = 0; i < n; i++) {
        pirn_mutex_lock(&mutex);
        x++;
        if (yield) {
            pirn_yield();
        }
        pirn_mutex_unlock(&mutex);
    }
}

static bool contend(const char *name, int n, bool yield)
{
    pirn_wg wg = {0};
    x = 0;
    pirn_ns t0 = pirn_now();
    for (int g = 0; g < 8; g++) {
        pirn_wg_go(&wg, add, n / 8, yield);
    }
    pirn_wg_wait(&wg);
    bench_report(name, n, t0);
    return x == n / 8 * 8;
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 8000000);
    if (!contend("mutex8", n, false) || !contend("mutex8_yield", n / 8, true)) {
        fprintf(stderr, "lost update\n");
        return 1;
    }
    return 0;
}

int main(void)
{
    return bench_main(run);
}
