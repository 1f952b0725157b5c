/* SPDX-License-Identifier: MIT */
// expect-error: at most 6 arguments can be passed to worker
#include <pirn.h>

int worker(int a, int b, int c, int d, int e, int f, int h);

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)p;
    pirn_group_go(g, worker, 1, 2, 3, 4, 5, 6, 7); // line-of-error
}
