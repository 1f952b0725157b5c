/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, 2\.0\)
// expect-error: pirn_floating_argument_
#include <pirn.h>

void worker(int n);

void test(void);
void test(void)
{
    pirn_go(worker, 2.0); // line-of-error
}
