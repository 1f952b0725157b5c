/* SPDX-License-Identifier: MIT */
/*
 * Two goroutines compute: ns a unit of their work (of both, by the clock), alone
 * (readers_off) and beside 64 goroutines in blocking reads of pipes (readers), plain
 * ones that nobody announces, of which each gets a byte once a second. Least of
 * rounds that take turns.
 */
#include "bench.h"

#include <stdatomic.h>
#include <unistd.h>

enum {
    READERS = 64,
    UNIT = 1024 /* steps */
};

static struct {
    _Alignas(128) atomic_llong units;
} count[2];

static int pipes[READERS][2];
static atomic_bool stop;   /* those that compute */
static atomic_bool quit;   /* the feeder, and through it the readers */
static atomic_int entered; /* readers */
static volatile uint64_t sink;

static void compute(int g)
{
    uint64_t x = (uint64_t)g + 1;
    while (!atomic_load(&stop)) {
        for (int i = 0; i < UNIT; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        atomic_fetch_add(&count[g].units, 1);
    }
    sink = x;
}

static int64_t units(void)
{
    return atomic_load(&count[0].units) + atomic_load(&count[1].units);
}

/* What a unit takes, over one span. */
static double rate(pirn_ns span)
{
    int64_t u = units();
    pirn_ns t0 = pirn_now();
    pirn_sleep(span);
    return (double)(pirn_now() - t0) / (double)(units() - u);
}

static void reader(int fd)
{
    atomic_fetch_add(&entered, 1);
    for (char c = 'b'; c != 'q';) {
        bench_check(read(fd, &c, 1) == 1, "read");
    }
}

static void give(int i, const char *byte)
{
    bench_check(write(pipes[i % READERS][1], byte, 1) == 1, "write");
}

/* READERS bytes in each period, one after the other. Who wakes late writes what is due. */
static void feed(pirn_ns period)
{
    pirn_ns t0 = pirn_now();
    int sent = 0;
    while (!atomic_load(&quit)) {
        for (pirn_ns due = (pirn_now() - t0) * READERS / period; sent < due; sent++) {
            give(sent, "b");
        }
        pirn_sleep(period / READERS);
    }
    for (int i = 0; i < READERS; i++) {
        give(i, "q");
    }
}

static double beside(pirn_ns span, pirn_ns period)
{
    pirn_wg wg = {0};
    atomic_store(&entered, 0);
    atomic_store(&quit, false);
    for (int i = 0; i < READERS; i++) {
        pirn_wg_go(&wg, reader, pipes[i][0]);
    }
    while (atomic_load(&entered) < READERS) {
        pirn_yield();
    }
    pirn_wg_go(&wg, feed, period);
    pirn_sleep(100 * PIRN_MS);
    double ns = rate(span);
    atomic_store(&quit, true);
    pirn_wg_wait(&wg);
    return ns;
}

static int run(void *arg)
{
    (void)arg;
    int rounds = bench_int("ROUNDS", 3);
    pirn_ns span = bench_int("SPAN_MS", 1000) * PIRN_MS;
    pirn_ns period = bench_int("PERIOD_MS", 1000) * PIRN_MS;
    for (int i = 0; i < READERS; i++) {
        bench_check(pipe(pipes[i]) == 0, "pipe");
    }
    pirn_wg computing = {0};
    for (int g = 0; g < 2; g++) {
        pirn_wg_go(&computing, compute, g);
    }
    double alone = 0, with = 0;
    for (int r = 0; r < rounds; r++) {
        double ns = rate(span);
        alone = r == 0 || ns < alone ? ns : alone;
        ns = beside(span, period);
        with = r == 0 || ns < with ? ns : with;
    }
    atomic_store(&stop, true);
    pirn_wg_wait(&computing);
    bench_value("readers_off", alone);
    bench_value("readers", with);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
