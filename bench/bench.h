/* SPDX-License-Identifier: MIT */
/*
 * What every benchmark needs; the twin of go/bench/bench.go. A benchmark prints
 * one line a result: `name workers value`, in nanoseconds an operation or bytes.
 * From the environment: WORKERS, the number of Ps (1), and N, how many.
 */
#ifndef BENCH_H
#define BENCH_H

#include <pirn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int bench_int(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static inline int bench_workers(void)
{
    return bench_int("WORKERS", 1);
}

static inline void bench_report(const char *name, int n, pirn_ns since)
{
    printf("%s %d %.2f\n", name, bench_workers(), (double)(pirn_now() - since) / n);
}

static inline void bench_value(const char *name, double value)
{
    printf("%s %d %.1f\n", name, bench_workers(), value);
}

/* A line of /proc/self/status in bytes: VmRSS, VmHWM (the peak), VmPTE (page tables). */
static inline long bench_memory(const char *key)
{
    char line[128];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kb = strtol(line + strlen(key) + 1, NULL, 10);
        }
    }
    if (f) {
        fclose(f);
    }
    return kb * 1024;
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
