/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: go of nil func value
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_after_func(1, NULL, NULL);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
