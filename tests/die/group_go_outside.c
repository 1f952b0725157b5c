/* SPDX-License-Identifier: MIT */
/*
 * No room, and nobody who would make some.
 * expect-exit: 2
 * expect-first-line: panic: pirn_group_go would block, and no runtime runs
 */
#include <pirn.h>

static int nothing(void)
{
    return 0;
}

int main(void)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_set_limit(&g, 0);
    if (pirn_group_try_go(&g, nothing)) {
        return 1;
    }
    pirn_group_go(&g, nothing);
    return 0;
}
