/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_go: no runtime runs (call it below pirn_run, or after pirn_start)
 */
#include <pirn.h>

static void nothing(void)
{
}

int main(void)
{
    pirn_go(nothing);
    return 0;
}
