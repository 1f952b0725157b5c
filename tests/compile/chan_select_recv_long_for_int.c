/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

void test(pirn_chan(int) c, long *p);
void test(pirn_chan(int) c, long *p)
{
    (void)pirn_select(PIRN_RECV(c, p), PIRN_DEFAULT); // line-of-error
}
