/* SPDX-License-Identifier: MIT */
// expect-ok
// What a group can start, and where pirn_group_go can stand.
#include <pirn.h>
#include <stdio.h>
#pragma GCC diagnostic error "-Wshadow"
#pragma GCC diagnostic error "-Wconversion"

enum colour { RED };
struct opaque;

int none(void);
int number(int n);
int mixed(char c, double d, const char *s, float f, void *p, enum colour e);
int channel(pirn_chan(int) c, struct opaque *o);
_Noreturn int never(void);

void test(pirn_group *g, pirn_group groups[2], pirn_chan(int) c, struct opaque *o, float f);
void test(pirn_group *g, pirn_group groups[2], pirn_chan(int) c, struct opaque *o, float f)
{
    int (*variable)(int) = number;
    int pirn_room = 0;

    pirn_group_go(g, none);
    pirn_group_go(&groups[1], &none);
    pirn_group_go(g, number, 'c');
    pirn_group_go(g, variable, 5L);
    pirn_group_go(g, f > 0 ? number : variable, 1);
    pirn_group_go(g, mixed, 'c', 2.5, "text", f, o, RED);
    pirn_group_go(g, channel, c, NULL);
    pirn_group_go(g, printf, "%d %g\n", 3, 2.5);
    pirn_group_go(g, puts, "text");
    pirn_group_go(g, never);
    if (pirn_group_try_go(g, none) && !pirn_group_try_go(g, number, pirn_room))
        pirn_group_go(g, none);
    else
        pirn_group_go(g, number, 3);
    while (!pirn_group_try_go(groups, channel, pirn_chan_retain(c), o))
        pirn_yield();
    bool room = pirn_group_try_go(g, number, pirn_group_try_go(g, none));
    (void)room;
}
