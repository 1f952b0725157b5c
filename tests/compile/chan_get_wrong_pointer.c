/* SPDX-License-Identifier: MIT */
// expect-error-gcc: incompatible pointer type
// expect-error-clang: incompatible pointer types
#include <pirn.h>

void test(pirn_chan(int *) c, long **p);
void test(pirn_chan(int *) c, long **p)
{
    *p = pirn_chan_get(c); // line-of-error
}
