/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, n\)
// expect-error: pirn_integer_argument_
#include <pirn.h>

void worker(double d);

void test(int n);
void test(int n)
{
    pirn_go(worker, n); // line-of-error
}
