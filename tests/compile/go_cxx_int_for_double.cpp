/* SPDX-License-Identifier: MIT */
// expect-error: an integer is passed for floating point, or the reverse
#include <pirn.h>

void worker(double d);

void test();
void test()
{
    pirn_go(worker, 3); // line-of-error
}
