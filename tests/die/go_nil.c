/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: fatal error: go of nil func value
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>

static void (*volatile nothing)(int);

static int start(void *arg)
{
    (void)arg;
    pirn_go(nothing, 1);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
