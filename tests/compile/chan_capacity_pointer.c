/* SPDX-License-Identifier: MIT */
// expect-error-gcc: unary plus
// expect-error-clang: unary expression
#include <pirn.h>

void test(int *p);
void test(int *p)
{
    (void)pirn_chan_make(int, p); // line-of-error
}
