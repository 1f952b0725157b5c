/* SPDX-License-Identifier: MIT */
// expect-error: an integer is passed for floating point
#include <pirn.h>

int worker(double d);

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)p;
    pirn_group_go(g, worker, 1); // line-of-error
}
