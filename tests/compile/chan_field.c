/* SPDX-License-Identifier: MIT */
// expect-error: incompatible pointer type
#include <pirn.h>

struct point {
    int x, y;
};
struct other {
    int x, y;
};
struct worker {
    pirn_chan(struct point) in;
};

void test(pirn_chan(struct other) c, struct worker *w);
void test(pirn_chan(struct other) c, struct worker *w)
{
    w->in = c; // line-of-error
}
