/* SPDX-License-Identifier: MIT */
// expect-error: too few arguments to function
// expect-error: worker
#include <pirn.h>

void worker(int id, int n);

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    pirn_defer(worker, 1); // line-of-error
}
