/* SPDX-License-Identifier: MIT */
// expect-error: incompatible type
#include <pirn.h>

struct point {
    int x, y;
};

void test(pirn_chan(int) c, struct point p);
void test(pirn_chan(int) c, struct point p)
{
    (void)pirn_chan_try_send(c, p); // line-of-error
}
