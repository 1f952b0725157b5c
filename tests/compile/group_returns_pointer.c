/* SPDX-License-Identifier: MIT */
// expect-error: worker does not return int
#include <pirn.h>

char *worker(int n);

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)p;
    pirn_group_try_go(g, worker, 1); // line-of-error
}
