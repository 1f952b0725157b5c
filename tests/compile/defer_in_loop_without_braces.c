/* SPDX-License-Identifier: MIT */
// expect-error-gcc: expected expression
// expect-error-clang: expected expression
#include <pirn.h>

void worker(int n);

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    while (n)
        pirn_defer(worker, n); // line-of-error
}
