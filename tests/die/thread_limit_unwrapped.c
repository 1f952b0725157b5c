/* SPDX-License-Identifier: MIT */
/*
 * The same in plain calls: each takes a thread, and the next one's P.
 * expect-exit: 2
 * expect-first-line: pirn: program exceeds 8-thread limit
 * expect-stderr-regex: \Apirn: program exceeds 8-thread limit\nfatal error: thread exhaustion$
 * procs: 1,4
 */
#include <unistd.h>

#include <pirn.h>

static void work(void)
{
    for (;;) {
        pause();
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
    return pirn_run_config(&(pirn_config){.max_threads = 8}, start, NULL);
}
