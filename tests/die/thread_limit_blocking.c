/* SPDX-License-Identifier: MIT */
/*
 * More threads blocked at once than are allowed.
 * expect-exit: 2
 * expect-first-line: pirn: program exceeds 8-thread limit
 * expect-stderr-regex: \Apirn: program exceeds 8-thread limit\nfatal error: thread exhaustion$
 * procs: 1,4
 */
#include <unistd.h>

#include <pirn.h>

static void *blocks(void *arg)
{
    for (;;) {
        pause();
    }
    return arg;
}

static void work(void)
{
    pirn_blocking(blocks, NULL);
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    for (int i = 0; i < 64; i++) {
        pirn_wg_go(&wg, work);
    }
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.max_threads = 8}, start, NULL);
}
