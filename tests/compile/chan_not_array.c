/* SPDX-License-Identifier: MIT */
// expect-error: subscripted value
#include <pirn.h>

extern int four[4], one[1], two[2];

void test(void);
void test(void)
{
    pirn_chan_send(four, 1); // line-of-error
}
