/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: sync: negative WaitGroup counter
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_wg_add(&wg, 1);
    pirn_wg_done(&wg);
    pirn_wg_done(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
