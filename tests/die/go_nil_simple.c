/* SPDX-License-Identifier: MIT */
/*
 * The short way of a function of one pointer.
 * expect-exit: 2
 * expect-first-line: fatal error: go of nil func value
 */
#include <pirn.h>

static void (*volatile nothing)(void *);

static int start(void *arg)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, nothing, arg);
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
