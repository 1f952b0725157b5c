/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that wait for each other's mutexes are named in every dump.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine (\d+) \[mutex lock(, .*)?\] first:\n\tthe mutex is held by goroutine \d+\n(\t.*\n)+\tcreated by goroutine 1 at
 * expect-stderr-regex: ^deadlock of mutexes:\n\tgoroutine (\d+) waits for mutex 0x[0-9a-f]+, which is held by goroutine (\d+)\n\tgoroutine \2 waits for mutex 0x[0-9a-f]+, which is held by goroutine \1$
 * procs: 1,4
 */
#include "circle.h"

static int start(void *arg)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, first);
    pirn_wg_go(&wg, second);
    pirn_wg_wait(&wg);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
