/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

void test(pirn_chan(pirn_chan(int)) c);
void test(pirn_chan(pirn_chan(int)) c)
{
    pirn_chan(long) d;
    (void)pirn_chan_recv(c, &d); // line-of-error
}
