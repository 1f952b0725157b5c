/* SPDX-License-Identifier: MIT */
// expect-error: wrong number of arguments
#include <pirn.h>

int worker(int n);

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)p;
    pirn_group_go(g, worker); // line-of-error
}
