/* SPDX-License-Identifier: MIT */
// expect-error-gcc: invalid initializer
// expect-error-clang: incompatible type .struct point \*.
#include <pirn.h>

struct point {
    int x, y;
};

void test(pirn_chan(struct point) c, struct point *p);
void test(pirn_chan(struct point) c, struct point *p)
{
    pirn_chan_send(c, p); // line-of-error
}
