/* SPDX-License-Identifier: MIT */
/*
 * UndefinedBehaviorSanitizer on the stack of a goroutine.
 * expect-exit: 1
 * expect-stderr-regex: ubsan_overflow\.c:\d+:\d+: runtime error: signed integer overflow: 2147483647 \+ 1
 * procs: 1,4
 */
#include <limits.h>
#include <pirn.h>

static void adds(int one)
{
    volatile int n = INT_MAX;
    n = n + one;
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, adds, 1);
    pirn_wg_wait(&wg);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
