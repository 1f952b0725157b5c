/* SPDX-License-Identifier: MIT */
// expect-error-gcc: invalid initializer|incompatible types
// expect-error-clang: incompatible type .struct other.
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
    pirn_chan_send(c, o); // line-of-error
}
