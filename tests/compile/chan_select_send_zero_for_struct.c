/* SPDX-License-Identifier: MIT */
// expect-error: incompatible type
#include <pirn.h>

struct point {
    int x, y;
};

void test(pirn_chan(struct point) c);
void test(pirn_chan(struct point) c)
{
    (void)pirn_select(PIRN_SEND(c, 0), PIRN_DEFAULT); // line-of-error
}
