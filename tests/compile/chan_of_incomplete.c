/* SPDX-License-Identifier: MIT */
// expect-error: incomplete
#include <pirn.h>

void test(void);
void test(void)
{
    (void)pirn_chan_make(struct unknown, 1); // line-of-error
}
