/* SPDX-License-Identifier: MIT */
/*
 * A goroutine starts another, which queues on its P, and blocks in a read of an
 * empty pipe: the time until the other runs, p50 (ns). It then writes what the
 * reader waits for. Two spinners for each P compute and yield, so that no P is idle
 * and none comes to steal; the reader sleeps 30 ms before each time, in which a
 * sysmon that saw nothing to do backs off. The read is announced
 * (pirn_blocking_begin), given away at once (pirn_blocking), or plain; Go's twin
 * has only one kind.
 */
#include "bench.h"

#include <stdatomic.h>
#include <unistd.h>

#define GAP (30 * PIRN_MS)
#define SPIN (100 * PIRN_US)

static int ends[2]; /* of the pipe */
static pirn_ns ran; /* when the other did */
static atomic_bool stop;

static void spinner(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        for (pirn_ns t0 = pirn_now(); pirn_now() - t0 < SPIN;) {
        }
        pirn_yield();
    }
}

static void other(void *arg)
{
    (void)arg;
    ran = pirn_now();
    bench_check(write(ends[1], "b", 1) == 1, "write");
}

static void *take(void *arg)
{
    char c;
    bench_check(read(ends[0], &c, 1) == 1, "read");
    return arg;
}

static void announced(void)
{
    char c;
    pirn_blocking_begin();
    ssize_t n = read(ends[0], &c, 1);
    pirn_blocking_end();
    bench_check(n == 1, "read");
}

static void given(void)
{
    pirn_blocking(take, NULL);
}

static void plain(void)
{
    take(NULL);
}

static void hand_off(const char *name, int n, pirn_ns *late, void (*block)(void))
{
    for (int got = 0, tries = 0; got < n; tries++) {
        if (tries == 2 * n) {
            fprintf(stderr, "%s: the other mostly runs before the read\n", name);
            exit(1);
        }
        pirn_sleep(GAP);
        pirn_go(other, NULL);
        pirn_ns t0 = pirn_now();
        block();
        if (ran > t0) {
            late[got++] = ran - t0;
        }
    }
    bench_sort(late, n);
    bench_value(name, (double)late[n / 2]);
}

static int run(void *arg)
{
    (void)arg;
    int n = bench_int("N", 200);
    pirn_ns *late = calloc((size_t)n, sizeof *late);
    bench_check(late && pipe(ends) == 0, "no pipe");
    pirn_wg spinners = {0};
    for (int i = 0; i < 2 * bench_workers(); i++) {
        pirn_wg_go(&spinners, spinner, NULL);
    }
    hand_off("handoff_announced_p50", n, late, announced);
    hand_off("handoff_given_p50", n, late, given);
    hand_off("handoff_plain_p50", n, late, plain);
    atomic_store(&stop, true);
    pirn_wg_wait(&spinners);
    free(late);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
