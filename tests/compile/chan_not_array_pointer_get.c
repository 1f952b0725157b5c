/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

extern int four[4], one[1], two[2];

void test(void);
void test(void)
{
    (void)pirn_chan_get(&four); // line-of-error
}
