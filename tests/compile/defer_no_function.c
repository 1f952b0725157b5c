/* SPDX-License-Identifier: MIT */
// expect-error: called object|not a function
#include <pirn.h>

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    pirn_defer(n, 1); // line-of-error
}
