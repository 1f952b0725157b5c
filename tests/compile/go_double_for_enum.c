/* SPDX-License-Identifier: MIT */
// expect-error-gcc: pirn_go\(worker, 1.0\)
// expect-error-gcc: in conversion from .*float.* to .enum colour.
// clang converts it silently, whatever one asks.
#include <pirn.h>

enum colour { RED };
void worker(enum colour c);

void test(void);
void test(void)
{
    pirn_go(worker, 1.0); // line-of-error
}
