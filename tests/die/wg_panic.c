/* SPDX-License-Identifier: MIT */
/*
 * Number 105: a panic in a child does not release who waits.
 * expect-exit: 2
 * expect-first-line: panic: child
 * expect-no-stderr: released
 * procs: 1,4
 */
#include <pirn.h>
#include <stdio.h>

static void child(void)
{
    pirn_panic("child");
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_wg_go(&wg, child);
    pirn_wg_wait(&wg);
    fprintf(stderr, "released\n");
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
