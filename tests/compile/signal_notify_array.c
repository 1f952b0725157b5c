/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

void test(int (*p)[3]);
void test(int (*p)[3])
{
    (void)pirn_signal_notify(p, 1); // line-of-error
}
