/* SPDX-License-Identifier: MIT */
// expect-error: subscripted value
#include <pirn.h>

void test(void);
void test(void)
{
    pirn_chan_send(NULL, 1); // line-of-error
}
