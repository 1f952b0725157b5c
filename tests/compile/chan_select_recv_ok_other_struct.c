/* SPDX-License-Identifier: MIT */
// expect-error: not compatible with any
#include <pirn.h>

struct point {
    int x, y;
};
struct other {
    int x, y;
};

void test(pirn_chan(struct point) c, struct other *p, bool *ok);
void test(pirn_chan(struct point) c, struct other *p, bool *ok)
{
    (void)pirn_select(PIRN_RECV_OK(c, p, ok), PIRN_DEFAULT); // line-of-error
}
