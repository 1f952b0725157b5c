/* SPDX-License-Identifier: MIT */
/*
 * What a benchmark is told, and how it answers; knows nothing of pirn, for the
 * peers use it too, in C and C++. One line a result: `name workers value`, in
 * nanoseconds an operation or bytes. From the environment: WORKERS, the number
 * of Ps (1), and N, how many.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdint.h>
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

/* n operations took ns. */
static inline void bench_per_op(const char *name, int n, int64_t ns)
{
    printf("%s %d %.2f\n", name, bench_workers(), (double)ns / n);
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

#endif
