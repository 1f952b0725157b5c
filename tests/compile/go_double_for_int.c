/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, d\)
// expect-error: pirn_floating_argument_
#include <pirn.h>

void worker(int n);

void test(double d);
void test(double d)
{
    pirn_go(worker, d); // line-of-error
}
