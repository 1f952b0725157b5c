/* SPDX-License-Identifier: MIT */
// expect-error-gcc: argument 1 of .worker. from incompatible pointer type
// expect-error-clang: incompatible pointer types passing
// expect-error-clang: worker
#include <pirn.h>

int worker(int *p);

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)p;
    pirn_group_go(g, worker, p); // line-of-error
}
