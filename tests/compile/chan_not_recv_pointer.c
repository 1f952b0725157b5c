/* SPDX-License-Identifier: MIT */
// expect-error: subscripted value
#include <pirn.h>

void test(int *c);
void test(int *c)
{
    (void)pirn_chan_recv(c, NULL); // line-of-error
}
