/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

void test(pirn_chan(int) c, const int *p);
void test(pirn_chan(int) c, const int *p)
{
    (void)pirn_chan_recv(c, p); // line-of-error
}
