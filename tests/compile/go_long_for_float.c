/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, 1, 3L\)
// expect-error: pirn_integer_argument_
#include <pirn.h>

void worker(int a, float f);

void test(void);
void test(void)
{
    pirn_go(worker, 1, 3L); // line-of-error
}
