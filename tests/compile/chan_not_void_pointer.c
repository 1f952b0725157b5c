/* SPDX-License-Identifier: MIT */
// expect-error: subscripted value
#include <pirn.h>

void test(void *c);
void test(void *c)
{
    pirn_chan_send(c, 1); // line-of-error
}
