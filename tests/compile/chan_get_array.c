/* SPDX-License-Identifier: MIT */
// It would be a pointer into an object that is gone.
// expect-error: function.* return.* array|declared as function returning an array
#include <pirn.h>

void test(pirn_chan(int[4]) c, int *p);
void test(pirn_chan(int[4]) c, int *p)
{
    p[0] = *pirn_chan_get(c); // line-of-error
}
