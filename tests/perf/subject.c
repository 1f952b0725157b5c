/* SPDX-License-Identifier: MIT */
/* What tests/perf/run samples: goroutines that compute, yield and are preempted. With frame pointers. */
#include <pirn.h>
#include <time.h>

static __attribute__((noinline)) void innermost(long n)
{
    for (volatile long i = 0; i < n; i++) {
    }
    __asm__ volatile("");
}

static long cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void computes(void)
{
    while (cpu_ms() < 300) {
        innermost(100000);
        pirn_yield();
    }
    __asm__ volatile("");
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 4; i++)
        pirn_wg_go(&wg, computes);
    pirn_wg_wait(&wg);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
