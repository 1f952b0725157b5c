/* SPDX-License-Identifier: MIT */
// expect-error-gcc: pointer targets .* differ in signedness
// expect-error-clang: with different sign
#include <pirn.h>

void test(pirn_chan(int *) c, unsigned *p);
void test(pirn_chan(int *) c, unsigned *p)
{
    pirn_chan_send(c, p); // line-of-error
}
