/* SPDX-License-Identifier: MIT */
/* What every benchmark of pirn needs; the twin of go/bench/bench.go. */
#ifndef BENCH_H
#define BENCH_H

#include "report.h"

#include <pirn.h>

static inline void bench_report(const char *name, int n, pirn_ns since)
{
    bench_per_op(name, n, pirn_now() - since);
}

/* If not ok, says what failed and why (errno), and ends the program. */
static inline void bench_check(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static inline int bench_compare(const void *a, const void *b)
{
    pirn_ns x = *(const pirn_ns *)a, y = *(const pirn_ns *)b;
    return (x > y) - (x < y);
}

static inline void bench_sort(pirn_ns *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, bench_compare);
}

/* main() of a benchmark: runs fn as goroutine 1 on WORKERS Ps. */
static inline int bench_main(int (*fn)(void *))
{
    pirn_config config = {.procs = bench_workers()};
    int status = pirn_run_config(&config, fn, NULL);
    if (status < 0) {
        fprintf(stderr, "the runtime does not start: %s\n", strerror(-status));
        return 1;
    }
    return status;
}

#endif
