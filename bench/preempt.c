/* SPDX-License-Identifier: MIT */
/*
 * What preemption costs those that compute: two loops without calls for each P, in
 * registers, and with 256 KB each, whose cache lines they follow in random order and
 * write to; ns of CPU time (of the whole process) a unit of work with preemption,
 * and without (_off), when one runs to its end before the other begins. Least of
 * rounds that take turns; each is a runtime of its own.
 */
#include "bench.h"

#include <time.h>

enum {
    UNIT = 1024,            /* steps */
    LINES = 256 * 1024 / 64 /* of a working set */
};

struct set {
    struct {
        _Alignas(64) uint64_t next;
        uint64_t count;
    } line[LINES];
};

static struct set *sets;
static int loops, units;
static volatile uint64_t sink;

static inline uint64_t step(uint64_t x)
{
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

/* Links all lines to one ring in random order. */
static void shuffle(struct set *s, uint64_t x)
{
    for (uint64_t i = 0; i < LINES; i++) {
        s->line[i].next = i;
    }
    for (uint64_t i = LINES - 1; i > 0; i--) {
        x = step(x);
        uint64_t with = x % i, next = s->line[i].next;
        s->line[i].next = s->line[with].next;
        s->line[with].next = next;
    }
}

static void registers(int g)
{
    uint64_t x = (uint64_t)g + 1;
    for (int64_t i = 0; i < (int64_t)units * UNIT; i++) {
        x = step(x);
    }
    sink = x;
}

static void memory(int g)
{
    struct set *s = &sets[g];
    uint64_t at = 0;
    for (int64_t i = 0; i < (int64_t)units * UNIT; i++) {
        s->line[at].count++;
        at = s->line[at].next;
    }
    sink = at;
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * PIRN_SEC + t.tv_nsec;
}

struct round {
    void (*loop)(int);
    bool preempt;
    int64_t ns;
};

static int run(void *arg)
{
    struct round *r = arg;
    pirn_metrics_v1 before, after;
    pirn_wg wg = {0};
    pirn_metrics(&before);
    int64_t t0 = cpu_ns();
    for (int g = 0; g < loops; g++) {
        pirn_wg_go(&wg, r->loop, g);
    }
    pirn_wg_wait(&wg);
    r->ns = cpu_ns() - t0;
    pirn_metrics(&after);
    if ((after.preempted != before.preempted) != r->preempt) {
        fprintf(stderr, r->preempt ? "nobody was preempted\n" : "somebody was preempted\n");
        return 1;
    }
    return 0;
}

static int64_t once(void (*loop)(int), bool preempt)
{
    pirn_config config = {.procs = bench_workers(), .flags = preempt ? 0 : PIRN_F_NO_PREEMPT};
    struct round r = {.loop = loop, .preempt = preempt};
    int status = pirn_run_config(&config, run, &r);
    if (status < 0) {
        fprintf(stderr, "the runtime does not start: %s\n", strerror(-status));
    }
    if (status) {
        exit(1);
    }
    return r.ns;
}

static void compare(const char *name, const char *name_off, int n, void (*loop)(int))
{
    int64_t on = INT64_MAX, off = INT64_MAX;
    units = n;
    for (int r = bench_int("ROUNDS", 10); r > 0; r--) {
        int64_t ns = once(loop, true);
        on = ns < on ? ns : on;
        ns = once(loop, false);
        off = ns < off ? ns : off;
    }
    bench_per_op(name, loops * units, on);
    bench_per_op(name_off, loops * units, off);
}

int main(void)
{
    int n = bench_int("N", 60000);
    loops = 2 * bench_workers();
    sets = aligned_alloc(4096, (size_t)loops * sizeof *sets);
    bench_check(sets, "no memory");
    for (int g = 0; g < loops; g++) {
        memset(&sets[g], 0, sizeof sets[g]);
        shuffle(&sets[g], (uint64_t)g + 1);
    }
    compare("preempt_regs", "preempt_regs_off", n, registers);
    compare("preempt_256k", "preempt_256k_off", n / 2, memory);
    free(sets);
    return 0;
}
