/* SPDX-License-Identifier: MIT */
/*
 * Nobody would call the function.
 * expect-exit: 2
 * expect-first-line: panic: a timer is set, and no runtime runs
 */
#include <pirn.h>

static void nothing(void *arg)
{
    (void)arg;
}

int main(void)
{
    pirn_after_func(1, nothing, NULL);
    return 0;
}
