/* SPDX-License-Identifier: MIT */
/*
 * Raised again before the Wait that was released has returned.
 * expect-exit: 2
 * expect-first-line: panic: sync: WaitGroup is reused before previous Wait has returned
 * expect-stderr-regex: ^goroutine 2 \[running\] waits:$
 * procs: 1
 */
#include <pirn.h>

static void waits(pirn_wg *wg)
{
    pirn_wg_wait(wg);
}

static int start(void *arg)
{
    (void)arg;
    static pirn_wg wg;
    pirn_wg_add(&wg, 1);
    pirn_go(waits, &wg);
    pirn_yield();
    pirn_wg_done(&wg);
    pirn_wg_add(&wg, 1);
    pirn_yield();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
