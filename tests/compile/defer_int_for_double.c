/* SPDX-License-Identifier: MIT */
// expect-error: pirn_defer\(worker, n\)
// expect-error: pirn_integer_argument_
#include <pirn.h>

void worker(double d);

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    pirn_defer(worker, n); // line-of-error
}
