/* SPDX-License-Identifier: MIT */
/*
 * What every peer needs. A peer is one program, in C or C++, for all benchmarks
 * that it can do: without an argument it prints what it is, then their names in
 * bench/run, one a line; with a name it runs that one, with the same environment
 * and the same results as pirn's program.
 *
 * A peer does the work of pirn's program, with the same meaning and as its users
 * would write it; what it has no means for, or no memory, it leaves out. Where it
 * differs nevertheless its head comment says so.
 */
#ifndef PEER_H
#define PEER_H

#include "../report.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#define PEER_MS INT64_C(1000000)
#define PEER_SEC INT64_C(1000000000)

struct peer_run {
    const char *name;
    void (*fn)(void);
};

static inline int64_t peer_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * PEER_SEC + t.tv_nsec;
}

static inline int64_t peer_cpu(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * PEER_SEC
           + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

static inline void peer_report(const char *name, int n, int64_t since)
{
    bench_per_op(name, n, peer_now() - since);
}

/* Ends the program if something is wrong, whoever else still runs. */
static inline void peer_check(bool right, const char *otherwise)
{
    if (!right) {
        fprintf(stderr, "%s\n", otherwise);
        _Exit(1);
    }
}

static inline int peer_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* sleep_latency; sleep_ms sleeps for a millisecond. */
static inline void peer_sleep_latency(void (*sleep_ms)(void))
{
    int n = bench_int("N", 3000);
    int64_t *late = (int64_t *)calloc((size_t)n, sizeof *late);
    peer_check(late, "out of memory");
    for (int i = 0; i < n; i++) {
        int64_t t0 = peer_now();
        sleep_ms();
        late[i] = peer_now() - t0 - PEER_MS;
    }
    qsort(late, (size_t)n, sizeof *late, peer_compare);
    bench_value("sleep_late_p50", (double)late[n / 2]);
    bench_value("sleep_late_p99", (double)late[n * 99 / 100]);
    free(late);
}

/* The run that argv asks for, or NULL, when what there is has been printed. */
static inline const struct peer_run *peer_choose(int argc, char **argv, const char *what,
                                                 const struct peer_run *runs, int n)
{
    if (argc < 2) {
        printf("%s\n", what);
    }
    for (int i = 0; i < n; i++) {
        if (argc < 2) {
            printf("%s\n", runs[i].name);
        } else if (strcmp(argv[1], runs[i].name) == 0) {
            return &runs[i];
        }
    }
    peer_check(argc < 2, "no such benchmark");
    return NULL;
}

#endif
