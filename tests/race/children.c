/* SPDX-License-Identifier: MIT */
/*
 * The children of a group are ordered with who waits, not with each other.
 *
 * expect-race: child by child, child by child
 * procs: 1,2,4
 */
#include "race.h"

static int child(bool waits)
{
    if (waits) {
        until(1);
    }
    n++;
    reached(1);
    return 0;
}

static void body(void)
{
    pirn_group g;
    pirn_group_init(&g, NULL);
    pirn_group_go(&g, child, false);
    pirn_group_go(&g, child, true);
    pirn_group_wait(&g);
}

RACE_MAIN(body)
