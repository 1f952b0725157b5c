/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

void test(pirn_chan(long) c);
void test(pirn_chan(long) c)
{
    (void)pirn_signal_notify(c, 1); // line-of-error
}
