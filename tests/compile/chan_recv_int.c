/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

void test(pirn_chan(int) c, int v);
void test(pirn_chan(int) c, int v)
{
    (void)pirn_chan_recv(c, v); // line-of-error
}
