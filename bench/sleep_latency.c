/* SPDX-License-Identifier: MIT */
/* One goroutine sleeps 1 ms n times: how late it wakes (ns), p50 and p99. */
#include "bench.h"

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 3000);
    pirn_ns *late = calloc((size_t)n, sizeof *late);
    if (!late) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    for (int i = 0; i < n; i++) {
        pirn_ns t0 = pirn_now();
        pirn_sleep(PIRN_MS);
        late[i] = pirn_now() - t0 - PIRN_MS;
    }
    bench_sort(late, n);
    bench_value("sleep_late_p50", (double)late[n / 2]);
    bench_value("sleep_late_p99", (double)late[n * 99 / 100]);
    free(late);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
