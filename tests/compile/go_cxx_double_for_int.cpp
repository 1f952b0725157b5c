/* SPDX-License-Identifier: MIT */
// expect-error: an integer is passed for floating point, or the reverse
#include <pirn.h>

void worker(int n);

void test();
void test()
{
    pirn_go(worker, 2.0); // line-of-error
}
