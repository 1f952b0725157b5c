/* SPDX-License-Identifier: MIT */
/*
 * A group whose goroutine was dropped with its runtime never ends.
 * expect-exit: 2
 * expect-first-line: panic: pirn_group_wait would block, and no runtime runs
 */
#include <pirn.h>

static pirn_group group;

static int wait_for_ever(void)
{
    return pirn_chan_recv((pirn_chan(int))NULL, NULL);
}

static int start(void *arg)
{
    (void)arg;
    pirn_group_init(&group, NULL);
    pirn_group_go(&group, wait_for_ever);
    return 0;
}

int main(void)
{
    pirn_group none;
    pirn_group_init(&none, NULL);
    if (pirn_group_wait(&none) || pirn_run(start, NULL)) { /* of nobody, it need not wait */
        return 1;
    }
    return pirn_group_wait(&group);
}
