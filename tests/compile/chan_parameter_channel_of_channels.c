/* SPDX-License-Identifier: MIT */
// expect-error: incompatible pointer type
#include <pirn.h>

void take(pirn_chan(int) c);

void test(pirn_chan(pirn_chan(int)) c);
void test(pirn_chan(pirn_chan(int)) c)
{
    take(c); // line-of-error
}
