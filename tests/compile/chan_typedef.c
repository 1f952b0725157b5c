/* SPDX-License-Identifier: MIT */
// expect-error: incompatible type|invalid initializer
#include <pirn.h>

struct point {
    int x, y;
};
struct other {
    int x, y;
};
typedef struct point point;
typedef pirn_chan(point) points;

void test(points c, struct other o);
void test(points c, struct other o)
{
    pirn_chan_send(c, o); // line-of-error
}
