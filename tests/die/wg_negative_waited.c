/* SPDX-License-Identifier: MIT */
/*
 * Below zero in one step while others wait.
 * expect-exit: 2
 * expect-first-line: panic: sync: negative WaitGroup counter
 * procs: 1,4
 */
#include <pirn.h>

static void wait_for(pirn_wg *wg)
{
    pirn_wg_wait(wg);
}

static int start(void *arg)
{
    static pirn_wg wg;
    (void)arg;
    pirn_wg_add(&wg, 2);
    for (int i = 0; i < 4; i++) {
        pirn_go(wait_for, &wg);
    }
    for (int i = 0; i < 100; i++) {
        pirn_yield();
    }
    pirn_wg_add(&wg, -3);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
