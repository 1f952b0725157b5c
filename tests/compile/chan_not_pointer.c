/* SPDX-License-Identifier: MIT */
// expect-error: subscripted value
#include <pirn.h>

void test(int *c);
void test(int *c)
{
    pirn_chan_send(c, 1); // line-of-error
}
