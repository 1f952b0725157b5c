/* SPDX-License-Identifier: MIT */
// expect-error: subscripted value
#include <pirn.h>

void test(int *c);
void test(int *c)
{
    pirn_chan_close(c); // line-of-error
}
