/* SPDX-License-Identifier: MIT */
// expect-error-gcc: array initialized from non-constant array expression|invalid initializer
// expect-error-clang: array initializer must be|initializing
#include <pirn.h>

extern int four[4];

void test(pirn_chan(int[4]) c);
void test(pirn_chan(int[4]) c)
{
    pirn_chan_send(c, four); // line-of-error
}
