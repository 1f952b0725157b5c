/* SPDX-License-Identifier: MIT */
// expect-error: incompatible pointer type
#include <pirn.h>

void test(pirn_chan(long) * d);
void test(pirn_chan(long) * d)
{
    *d = pirn_chan_make(int, 1); // line-of-error
}
