/* SPDX-License-Identifier: MIT */
/*
 * The scheduler at work, to look at: `make demo`.
 *
 *   create  a million goroutines that wait at one gate, all alive at the same time
 *   wake    the gate opens: all run to their end
 *   skynet  a 10-ary tree of goroutines with a million leaves sums its numbers
 *   fork    fib() with a goroutine for every other call, spread over all Ps
 *
 * What is seen of it is drawn by demo_screen.c, in a thread of its own.
 */
#include "demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DEMO_GOROUTINES
#define DEMO_GOROUTINES 1000000
#define DEMO_LEAVES 1000000
#define DEMO_FIB 43
#endif
#define FIB_CUTOFF 15
#define MEMORY_EACH 6000 /* bytes of free memory wanted for each waiting goroutine */

struct stage stages[STAGES] = {
    [CREATE] = {.name = "create", .what = "goroutines wait at a gate"},
    [WAKE] = {.name = "wake", .what = "go on when it opens"},
    [SKYNET] = {.name = "skynet", .what = "make a 10-ary tree"},
    [FORK] = {.name = "fork", .what = "compute fib()"},
};

static void begin(struct stage *s, int64_t n)
{
    s->n = (number)n;
    pirn_metrics(&s->before);
    s->began = pirn_now();
    s->state = RUNNING;
}

static void end(struct stage *s)
{
    s->took = pirn_now() - s->began;
    pirn_metrics(&s->after);
    s->state = DONE;
}

/* The value of a line of a file of /proc, in bytes. */
number memory(const char *path, const char *key)
{
    char line[128];
    number kb = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kb = strtoull(line + strlen(key), NULL, 10);
        }
    }
    if (f) {
        fclose(f);
    }
    return kb * 1024;
}

/* --- create and wake --------------------------------------------------------------------------- */

static pirn_wg gate, all;
_Atomic number arrived;

static void wait_at_gate(void *arg)
{
    (void)arg;
    arrived++;
    pirn_wg_wait(&gate);
    pirn_wg_done(&all);
}

static void create_and_wake(int n)
{
    number rss = memory("/proc/self/status", "VmRSS:");
    begin(&stages[CREATE], n);
    pirn_wg_add(&gate, 1);
    pirn_wg_add(&all, n);
    for (int i = 0; i < n; i++) {
        pirn_go(wait_at_gate, NULL);
    }
    while (arrived < (number)n) {
        pirn_yield();
    }
    end(&stages[CREATE]);
    stages[CREATE].bytes_each = (double)(memory("/proc/self/status", "VmRSS:") - rss) / n;

    begin(&stages[WAKE], n);
    pirn_wg_done(&gate);
    pirn_wg_wait(&all);
    end(&stages[WAKE]);
}

/* --- trees ------------------------------------------------------------------------------------- */

static void skynet(int64_t *out, int64_t first, int64_t leaves)
{
    if (leaves == 1) {
        *out = first;
        return;
    }
    pirn_wg wg = {0};
    int64_t part[10], sum = 0;
    for (int i = 0; i < 10; i++) {
        pirn_wg_go(&wg, skynet, &part[i], first + i * (leaves / 10), leaves / 10);
    }
    pirn_wg_wait(&wg);
    for (int i = 0; i < 10; i++) {
        sum += part[i];
    }
    *out = sum;
}

/* What each thread has done. Nothing here may park: after that we might be on another thread. */
struct share shares[SHARES];
atomic_int nshares;

static __attribute__((noinline)) void count_work(number work)
{
    static _Thread_local int mine = -1;
    if (mine < 0) {
        mine = atomic_fetch_add(&nshares, 1) % SHARES;
    }
    atomic_fetch_add_explicit(&shares[mine].work, work, memory_order_relaxed);
}

static number fib(int n)
{
    return n < 2 ? (number)n : fib(n - 1) + fib(n - 2);
}

static void fork_fib(number *out, int n)
{
    if (n < FIB_CUTOFF) {
        *out = fib(n);
        count_work(*out);
        return;
    }
    pirn_wg wg = {0};
    number a, b;
    pirn_wg_go(&wg, fork_fib, &a, n - 1); /* for whoever has time */
    fork_fib(&b, n - 2);
    pirn_wg_wait(&wg);
    *out = a + b;
}

static number fib_by_loop(int n)
{
    number a = 0, b = 1, next;
    for (; n > 0; n--, a = b, b = next) {
        next = a + b;
    }
    return a;
}

static int run(void *goroutines)
{
    int64_t leaves = DEMO_LEAVES, sum;
    number result;
    create_and_wake(*(int *)goroutines);
    begin(&stages[SKYNET], leaves + (leaves - 1) / 9 - 1);
    skynet(&sum, 0, leaves);
    end(&stages[SKYNET]);
    begin(&stages[FORK], (int64_t)fib_by_loop(DEMO_FIB - FIB_CUTOFF + 3) - 1);
    fork_fib(&result, DEMO_FIB);
    end(&stages[FORK]);
    return sum == leaves * (leaves - 1) / 2 && result == fib_by_loop(DEMO_FIB) ? 0 : 1;
}

/* Fewer than a million where memory is short, in the machine or in the container. */
static int goroutines_that_fit(void)
{
    number free = memory("/proc/meminfo", "MemAvailable:");
    number limit = memory("/sys/fs/cgroup/memory.max", "") / 1024;
    number fit = (limit && limit < free ? limit : free) / MEMORY_EACH / 10000 * 10000;
    return fit && fit < DEMO_GOROUTINES ? (int)fit : DEMO_GOROUTINES;
}

int main(void)
{
    int n = goroutines_that_fit();
    screen_start(n < DEMO_GOROUTINES ? "memory is short: fewer goroutines than a million" : NULL);
    int status = pirn_run(run, &n);
    screen_stop();
    if (status) {
        fprintf(stderr, "demo: %s\n", status < 0 ? strerror(-status) : "a sum is wrong");
    }
    return status ? 1 : 0;
}
