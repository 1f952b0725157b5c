/* SPDX-License-Identifier: MIT */
/*
 * A goroutine among a hundred others says "deep enough", then outgrows its stack of 64 KB: what the
 * tests of guards share.
 */
#ifndef TESTS_DIE_OVERFLOW_H
#define TESTS_DIE_OVERFLOW_H

#include <pirn.h>
#include <string.h>
#include <unistd.h>

static void neighbour(pirn_wg *wg)
{
    pirn_wg_wait(wg);
}

/* Not a tail call, and each frame is touched. */
static __attribute__((noinline)) int deep(int n)
{
    volatile char frame[1024];
    memset((char *)frame, n, sizeof frame);
    return n == 0 ? frame[1] : deep(n - 1) + frame[n % 1024];
}

static void overflow(void *arg)
{
    ssize_t n;
    (void)arg;
    deep(40); /* 48 KB are usable */
    n = write(1, "deep enough\n", 12);
    (void)n;
    deep(10000);
    _exit(1);
}

static int overflow_among_neighbours(void *arg)
{
    static pirn_wg never;
    (void)arg;
    pirn_wg_add(&never, 1);
    for (int i = 0; i < 100; i++) {
        pirn_go(neighbour, &never);
    }
    if (pirn_spawn(&(pirn_attr){.stack_size = 64 << 10}, overflow, NULL)) {
        return 3;
    }
    pirn_wg_wait(&never);
    return 4;
}

#endif
