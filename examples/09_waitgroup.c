/* SPDX-License-Identifier: MIT */
/*
 * A sum over a big array, in parallel: each goroutine sums one piece and writes
 * the result where its parent has told it to. No locks: no two goroutines share
 * a piece or a result, and what a goroutine wrote before its end is seen after
 * pirn_wg_wait().
 */
#include <pirn.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH 10000000
#define PIECES 64 /* more than there are CPUs, so that idle ones find something to steal */

static void sum_piece(const int *first, const int *end, int64_t *result)
{
    int64_t sum = 0;
    for (const int *p = first; p < end; p++) {
        sum += *p;
    }
    *result = sum;
}

static int64_t sum_parallel(const int *numbers, size_t n)
{
    int64_t part[PIECES], sum = 0;
    pirn_wg wg = {0};
    for (size_t i = 0; i < PIECES; i++) {
        pirn_wg_go(&wg, sum_piece, numbers + n * i / PIECES, numbers + n * (i + 1) / PIECES,
                   &part[i]);
    }
    pirn_wg_wait(&wg); /* part[] and wg are on this stack: nobody uses them any more */
    for (int i = 0; i < PIECES; i++) {
        sum += part[i];
    }
    return sum;
}

static int start(void *arg)
{
    (void)arg;
    int *numbers = malloc(LENGTH * sizeof *numbers);
    if (!numbers) {
        return 1;
    }
    for (int i = 0; i < LENGTH; i++) {
        numbers[i] = i % 1000;
    }
    pirn_ns t0 = pirn_now();
    int64_t sum = sum_parallel(numbers, LENGTH);
    printf("sum %lld in %.2f ms, by %d goroutines on %d Ps\n", (long long)sum,
           (double)(pirn_now() - t0) / PIRN_MS, PIECES, pirn_procs(0));
    free(numbers);
    return sum == (int64_t)LENGTH / 1000 * (999 * 1000 / 2) ? 0 : 1;
}

int main(void)
{
    return pirn_run(start, NULL);
}
