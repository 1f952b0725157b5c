/* SPDX-License-Identifier: MIT */
// expect-error: unary .\*.|indirection requires pointer
#include <pirn.h>

void test(int c);
void test(int c)
{
    (void)pirn_chan_get(c); // line-of-error
}
