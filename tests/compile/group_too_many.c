/* SPDX-License-Identifier: MIT */
// expect-error: too many arguments to function
// expect-error: worker
#include <pirn.h>

int worker(int n);

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)p;
    pirn_group_try_go(g, worker, 1, 2); // line-of-error
}
