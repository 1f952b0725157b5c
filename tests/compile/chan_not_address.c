/* SPDX-License-Identifier: MIT */
// expect-error-gcc: array with unspecified bounds
// expect-error-clang: subscript of pointer to incomplete type
#include <pirn.h>

void test(pirn_chan(int) c);
void test(pirn_chan(int) c)
{
    pirn_chan_send(&c, 1); // line-of-error
}
