/* SPDX-License-Identifier: MIT */
// expect-error: pirn: at most 6 arguments can be passed to worker
#include <pirn.h>

void worker(int a, int b, int c, int d, int e, int f, int g);

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    pirn_defer(worker, 1, 2, 3, 4, 5, 6, 7); // line-of-error
}
