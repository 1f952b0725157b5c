/* SPDX-License-Identifier: MIT */
/*
 * Four Ps and work for all of them, but one thread allowed.
 * expect-exit: 2
 * expect-first-line: pirn: program exceeds 1-thread limit
 * expect-stderr-regex: \Apirn: program exceeds 1-thread limit\nfatal error: thread exhaustion$
 */
#include <pirn.h>

static void work(void)
{
    for (;;) {
        pirn_yield();
    }
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
    return pirn_run_config(&(pirn_config){.procs = 4, .max_threads = 1}, start, NULL);
}
