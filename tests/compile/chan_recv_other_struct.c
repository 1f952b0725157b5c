/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

struct point {
    int x, y;
};
struct other {
    int x, y;
};

void test(pirn_chan(struct point) c, struct other *p);
void test(pirn_chan(struct point) c, struct other *p)
{
    (void)pirn_chan_recv(c, p); // line-of-error
}
