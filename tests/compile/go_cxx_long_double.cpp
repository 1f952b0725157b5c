/* SPDX-License-Identifier: MIT */
// expect-error: no scalar of at most 8 bytes
#include <pirn.h>

void worker(long double d);

void test();
void test()
{
    pirn_go(worker, 1.0); // line-of-error
}
