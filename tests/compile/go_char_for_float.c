/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, 'c'\)
// expect-error: pirn_integer_argument_
#include <pirn.h>

void worker(float f);

void test(void);
void test(void)
{
    pirn_go(worker, 'c'); // line-of-error
}
