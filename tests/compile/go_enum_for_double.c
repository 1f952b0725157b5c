/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, RED\)
// expect-error: pirn_integer_argument_
#include <pirn.h>

enum colour { RED };
void worker(double d);

void test(void);
void test(void)
{
    pirn_go(worker, RED); // line-of-error
}
