/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: group: modify limit while 2 goroutines in the group are still active
 * procs: 1,4
 */
#include <pirn.h>

static int wait_for_ever(void)
{
    return pirn_sleep(PIRN_NEVER);
}

static int start(void *arg)
{
    (void)arg;
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, wait_for_ever);
    pirn_group_go(&g, wait_for_ever);
    pirn_group_set_limit(&g, 3);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
