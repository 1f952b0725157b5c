/* SPDX-License-Identifier: MIT */
// expect-error: return.* array
#include <pirn.h>

void test(pirn_chan(int[4]) c, int *p);
void test(pirn_chan(int[4]) c, int *p)
{
    (void)pirn_select(PIRN_SEND(c, *p), PIRN_DEFAULT); // line-of-error
}
