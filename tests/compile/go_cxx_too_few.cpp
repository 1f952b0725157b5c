/* SPDX-License-Identifier: MIT */
// expect-error: wrong number of arguments
#include <pirn.h>

void worker(int a, int b);

void test();
void test()
{
    pirn_go(worker, 1); // line-of-error
}
