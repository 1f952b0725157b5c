/* SPDX-License-Identifier: MIT */
/*
 * A group is waited for once.
 * expect-exit: 2
 * expect-first-line: panic: group: was waited for already
 * procs: 1,4
 */
#include <pirn.h>

static int nothing(void)
{
    return 0;
}

static int start(void *arg)
{
    (void)arg;
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, nothing);
    pirn_group_wait(&g);
    pirn_group_wait(&g);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
