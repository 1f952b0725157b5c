/* SPDX-License-Identifier: MIT */
// expect-error: unary .\*.|indirection requires pointer
#include <pirn.h>

void test(int c);
void test(int c)
{
    pirn_chan_send(c, 1); // line-of-error
}
