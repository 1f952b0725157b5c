/* SPDX-License-Identifier: MIT */
// expect-error: incompatible type
#include <pirn.h>

struct point {
    int x, y;
};
struct other {
    int x, y;
};

void test(pirn_chan(struct point) c, struct other o);
void test(pirn_chan(struct point) c, struct other o)
{
    (void)pirn_select(PIRN_SEND(c, o), PIRN_DEFAULT); // line-of-error
}
