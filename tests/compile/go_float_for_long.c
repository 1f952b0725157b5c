/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, 1, 2\.0f\)
// expect-error: pirn_floating_argument_
#include <pirn.h>

void worker(int a, long n);

void test(void);
void test(void)
{
    pirn_go(worker, 1, 2.0f); // line-of-error
}
