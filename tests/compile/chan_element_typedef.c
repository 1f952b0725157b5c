/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

typedef long number;

void test(pirn_chan(number) c, int *p);
void test(pirn_chan(number) c, int *p)
{
    (void)pirn_chan_recv(c, p); // line-of-error
}
