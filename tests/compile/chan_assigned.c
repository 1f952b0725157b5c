/* SPDX-License-Identifier: MIT */
// expect-error: incompatible pointer type
#include <pirn.h>

void test(pirn_chan(int) c, pirn_chan(unsigned) * d);
void test(pirn_chan(int) c, pirn_chan(unsigned) * d)
{
    *d = c; // line-of-error
}
