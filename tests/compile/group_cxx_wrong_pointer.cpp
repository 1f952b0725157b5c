/* SPDX-License-Identifier: MIT */
// expect-error: pirn_group
#include <pirn.h>

int worker();

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)g;
    pirn_group_go(p, worker); // line-of-error
}
