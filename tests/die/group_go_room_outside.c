/* SPDX-License-Identifier: MIT */
/*
 * There is room, but nobody who would run it.
 * expect-exit: 2
 * expect-first-line: panic: pirn_go: no runtime runs (call it below pirn_run, or after pirn_start)
 */
#include <pirn.h>

static int nothing(void)
{
    return 0;
}

int main(void)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, nothing);
    return 0;
}
