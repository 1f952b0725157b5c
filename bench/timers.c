/* SPDX-License-Identifier: MIT */
/* N goroutines that sleep a random 1 to 100 ms ten times each. Prints ns of wall time, then of CPU. */
#include "bench.h"

#include <sys/resource.h>

static int64_t cpu_ns(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * PIRN_SEC
           + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * PIRN_US;
}

static void sleeper(uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;
    for (int i = 0; i < 10; i++) {
        x = x * 1664525u + 1013904223u;
        pirn_sleep((1 + (x >> 16) % 100) * PIRN_MS);
    }
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 100000);
    pirn_wg wg = {0};
    int64_t cpu = cpu_ns();
    pirn_ns t0 = pirn_now();
    for (int g = 0; g < n; g++) {
        pirn_wg_go(&wg, sleeper, (uint32_t)g);
    }
    pirn_wg_wait(&wg);
    bench_report("timers_wall", 1, t0);
    bench_value("timers_cpu", (double)(cpu_ns() - cpu));
    return 0;
}

int main(void)
{
    return bench_main(run);
}
