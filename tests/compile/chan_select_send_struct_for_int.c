/* SPDX-License-Identifier: MIT */
// expect-error: incompatible type
#include <pirn.h>

struct point {
    int x, y;
};

void test(pirn_chan(int) c, struct point p);
void test(pirn_chan(int) c, struct point p)
{
    (void)pirn_select(PIRN_SEND(c, p), PIRN_DEFAULT); // line-of-error
}
