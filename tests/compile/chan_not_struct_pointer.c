/* SPDX-License-Identifier: MIT */
// expect-error: subscripted value
#include <pirn.h>

struct point {
    int x, y;
};

void test(struct point *c);
void test(struct point *c)
{
    pirn_chan_send(c, 1); // line-of-error
}
