/* SPDX-License-Identifier: MIT */
// expect-error-gcc: invalid use of void expression
// expect-error-clang: incompatible type|not allowed|void
#include <pirn.h>

void worker(int n);
void nothing(void);

void test(void);
void test(void)
{
    pirn_go(worker, nothing()); // line-of-error
}
