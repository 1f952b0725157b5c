/* SPDX-License-Identifier: MIT */
// expect-error: pirn_group_check_
#include <pirn.h>

long worker();

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)p;
    pirn_group_try_go(g, worker); // line-of-error
}
