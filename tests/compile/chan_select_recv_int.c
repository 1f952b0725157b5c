/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

void test(pirn_chan(int) c, int v);
void test(pirn_chan(int) c, int v)
{
    (void)pirn_select(PIRN_RECV(c, v), PIRN_DEFAULT); // line-of-error
}
