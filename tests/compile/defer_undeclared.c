/* SPDX-License-Identifier: MIT */
// expect-error: undeclared
#include <pirn.h>

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    pirn_defer(nobody, 1); // line-of-error
}
