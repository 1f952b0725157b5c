/* SPDX-License-Identifier: MIT */
// expect-error: incompatible pointer type
#include <pirn.h>

void test(pirn_chan(int) c, pirn_chan(long) * d);
void test(pirn_chan(int) c, pirn_chan(long) * d)
{
    *d = pirn_chan_retain(c); // line-of-error
}
