/* SPDX-License-Identifier: MIT */
// expect-error: worker
// expect-error-gcc: not a function
// expect-error-clang: not a function
#include <pirn.h>

int worker;

void test(void);
void test(void)
{
    pirn_go(worker, 1); // line-of-error
}
