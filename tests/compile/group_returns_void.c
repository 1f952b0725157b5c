/* SPDX-License-Identifier: MIT */
// expect-error: worker does not return int
#include <pirn.h>

void worker(int n);

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)p;
    pirn_group_go(g, worker, 1); // line-of-error
}
