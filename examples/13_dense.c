/* SPDX-License-Identifier: MIT */
/*
 * Many shallow goroutines in little memory, and names for goroutines.
 *
 * A goroutine's stack takes at least one page, 4 KB, of memory. pirn_spawn() can
 * ask for a dense stack of 2, 4 or 8 KB instead: many in one huge page. That is
 * for code that is known to be shallow: there is no guard page below it, only a
 * canary, and printf alone needs 2 to 3 KB. These here only count and wait.
 */
#include <pirn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define COUNT 10000

static pirn_wg gate, all;
static atomic_int arrived;

static void shallow(void *arg)
{
    (void)arg;
    atomic_fetch_add(&arrived, 1);
    pirn_wg_wait(&gate);
    pirn_wg_done(&all);
}

/* A name helps whoever reads a goroutine dump. It can change as the work goes on. */
static void keeper(void)
{
    pirn_set_name("keeper of %d", COUNT);
    while (atomic_load(&arrived) < COUNT) {
        pirn_yield();
    }
    printf("%d goroutines wait at the gate, and %d in all are alive\n", COUNT,
           pirn_num_goroutines());
    pirn_wg_done(&gate); /* lets all of them go on */
}

static int start(void *arg)
{
    (void)arg;
    pirn_attr attr = {.name = "shallow", .stack_size = PIRN_STACK_DENSE_2K};
    pirn_wg_add(&gate, 1);
    pirn_wg_add(&all, COUNT);
    for (int i = 0; i < COUNT; i++) {
        int err = pirn_spawn(&attr, shallow, NULL); /* unlike pirn_go, tells of failure */
        if (err < 0) {
            fprintf(stderr, "pirn_spawn: %s\n", strerror(-err));
            return 1;
        }
    }
    pirn_go(keeper);
    pirn_wg_wait(&all);
    pirn_metrics_v1 m;
    pirn_metrics(&m);
    printf("%llu spawned, %llu switches\n", (unsigned long long)m.spawned,
           (unsigned long long)m.switches);
    return atomic_load(&arrived) == COUNT ? 0 : 1;
}

int main(void)
{
    return pirn_run(start, NULL);
}
