/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

extern int four[4], one[1], two[2];

void test(void);
void test(void)
{
    pirn_chan_close(&one); // line-of-error
}
