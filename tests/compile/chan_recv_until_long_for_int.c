/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

void test(pirn_chan(int) c, long *p);
void test(pirn_chan(int) c, long *p)
{
    (void)pirn_chan_recv_until(c, p, PIRN_NEVER); // line-of-error
}
