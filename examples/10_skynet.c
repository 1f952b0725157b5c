/* SPDX-License-Identifier: MIT */
/*
 * Skynet: a tree of goroutines. Each starts ten children, down to the leaves;
 * each leaf hands up its number, and every parent the sum of its children.
 *
 *     ./10_skynet 1000000        (leaves; without a number 10,000)
 *
 * Goroutines are so cheap that "one for each node" is a way to write a program:
 * one that has only been spawned takes 128 bytes, and gets a stack when it runs.
 */
#include <pirn.h>
#include <stdio.h>
#include <stdlib.h>

static void node(int64_t first, int64_t leaves, int64_t *result)
{
    if (leaves == 1) {
        *result = first;
        return;
    }
    int64_t part[10], sum = 0;
    pirn_wg wg = {0};
    for (int i = 0; i < 10; i++) {
        pirn_wg_go(&wg, node, first + i * (leaves / 10), leaves / 10, &part[i]);
    }
    pirn_wg_wait(&wg); /* parks this goroutine; its thread runs others meanwhile */
    for (int i = 0; i < 10; i++) {
        sum += part[i];
    }
    *result = sum;
}

static int start(void *arg)
{
    int64_t leaves = *(int64_t *)arg, sum;
    pirn_metrics_v1 m;
    pirn_ns t0 = pirn_now();
    node(0, leaves, &sum);
    pirn_ns took = pirn_now() - t0;
    pirn_metrics(&m);
    printf("%lld leaves, sum %lld: %.1f ms\n", (long long)leaves, (long long)sum,
           (double)took / PIRN_MS);
    printf("%llu goroutines on %llu Ps, %.0f ns each; %llu were stolen by an idle P\n",
           (unsigned long long)m.spawned, (unsigned long long)m.procs,
           (double)took / (double)m.spawned, (unsigned long long)m.stolen);
    return sum == leaves * (leaves - 1) / 2 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int64_t wanted = argc > 1 ? atoll(argv[1]) : 10000, leaves = 1;
    while (leaves * 10 <= wanted) {
        leaves *= 10;
    }
    return pirn_run(start, &leaves);
}
