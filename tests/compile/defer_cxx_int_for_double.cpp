/* SPDX-License-Identifier: MIT */
// expect-error: pirn: an integer is passed for floating point, or the reverse
#include <pirn.h>

void worker(double d);

void test(int n);
void test(int n)
{
    pirn_defer(worker, n); // line-of-error
}
