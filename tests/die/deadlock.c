/* SPDX-License-Identifier: MIT */
/*
 * Main waits for ever: the report names every goroutine, what it waits for and where it was made.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[wait group wait.*\] main:\n(\t.*\n)+\tstarted by pirn_run$
 * procs: 1,2,4,16
 * timeout: 10
 */
#include <pirn.h>

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_wg_add(&wg, 1);
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
