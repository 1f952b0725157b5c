/* SPDX-License-Identifier: MIT */
// expect-error-gcc: incompatible pointer type
// expect-error-clang: incompatible pointer types
#include <pirn.h>

int worker(void);

void test(pirn_group *g, long *p);
void test(pirn_group *g, long *p)
{
    (void)g;
    pirn_group_go(p, worker); // line-of-error
}
