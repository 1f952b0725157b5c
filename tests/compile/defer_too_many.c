/* SPDX-License-Identifier: MIT */
// expect-error: too many arguments to function
#include <pirn.h>

void worker(int id);

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    pirn_defer(worker, 1, 2); // line-of-error
}
