/* SPDX-License-Identifier: MIT */
/*
 * By two at the same time.
 * expect-exit: 2
 * expect-first-line: panic: group: is waited for already
 * procs: 1,4
 */
#include <pirn.h>

static pirn_group g;

static int wait_for_ever(void)
{
    return pirn_sleep(PIRN_NEVER);
}

static void wait_too(void)
{
    pirn_group_wait(&g);
}

static int start(void *arg)
{
    (void)arg;
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, wait_for_ever);
    pirn_go(wait_too);
    pirn_group_wait(&g);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
