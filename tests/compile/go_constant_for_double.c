/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, 3\)
// expect-error: pirn_integer_argument_
#include <pirn.h>

void worker(double d);

void test(void);
void test(void)
{
    pirn_go(worker, 3); // line-of-error
}
