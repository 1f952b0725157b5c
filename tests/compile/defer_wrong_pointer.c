/* SPDX-License-Identifier: MIT */
// expect-error: worker
#include <pirn.h>

void worker(int *p);

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    long l = 0;
    pirn_defer(worker, &l); // line-of-error
}
