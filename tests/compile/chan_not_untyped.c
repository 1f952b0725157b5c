/* SPDX-License-Identifier: MIT */
// expect-error: subscripted value
#include <pirn.h>

void test(pirn_chanv *c);
void test(pirn_chanv *c)
{
    pirn_chan_send(c, 1); // line-of-error
}
