/* SPDX-License-Identifier: MIT */
/*
 * The runtime has ended: as if it had never run.
 * expect-exit: 2
 * expect-first-line: panic: pirn_go: no runtime runs (call it below pirn_run, or after pirn_start)
 */
#include <pirn.h>

static void nothing(void)
{
}

static int start(void *arg)
{
    (void)arg;
    pirn_go(nothing);
    return 0;
}

int main(void)
{
    if (pirn_run(start, NULL)) {
        return 1;
    }
    pirn_go(nothing);
    return 0;
}
