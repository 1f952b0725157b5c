/* SPDX-License-Identifier: MIT */
/*
 * N goroutines that wait at one gate: ns to create each, bytes of RSS each (and
 * with the kernel's page tables for them), ns to wake and end each. With
 * STACK=2048 on dense stacks of 2 KB; the results are named parked_dense then.
 * The gate is a wait group that counts to one; Go's twin closes a channel.
 */
#include "bench.h"

#include <stdatomic.h>

static pirn_wg gate, all;
static atomic_int started;

static void wait_at_gate(void *arg)
{
    (void)arg;
    atomic_fetch_add(&started, 1);
    pirn_wg_wait(&gate);
    pirn_wg_done(&all);
}

static const char *named(const char *what, size_t stack, int n)
{
    static char name[64];
    snprintf(name, sizeof name, "parked%s_%s_%d", stack ? "_dense" : "", what, n);
    return name;
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 100000);
    size_t stack = (size_t)bench_int("STACK", 0);
    pirn_attr attr = {.stack_size = stack};
    long rss = bench_memory("VmRSS"), tables = bench_memory("VmPTE");

    pirn_ns t0 = pirn_now();
    pirn_wg_add(&gate, 1);
    pirn_wg_add(&all, n);
    for (int i = 0; i < n; i++) {
        if (!stack) {
            pirn_go(wait_at_gate, NULL);
        } else if (pirn_spawn(&attr, wait_at_gate, NULL) < 0) {
            fprintf(stderr, "goroutine %d can't be made\n", i);
            return 1;
        }
    }
    while (atomic_load(&started) < n) {
        pirn_yield();
    }
    bench_report(named("create", stack, n), n, t0);

    rss = bench_memory("VmRSS") - rss;
    tables = bench_memory("VmPTE") - tables;
    bench_value(named("bytes", stack, n), (double)rss / n);
    bench_value(named("bytes_pt", stack, n), (double)(rss + tables) / n);

    t0 = pirn_now();
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
    bench_report(named("wake", stack, n), n, t0);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
