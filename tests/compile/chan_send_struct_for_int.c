/* SPDX-License-Identifier: MIT */
// expect-error-gcc: incompatible types when initializing type .int. using type .struct point.
// expect-error-clang: initializing .*int.* with an expression of incompatible type .struct point.
#include <pirn.h>

struct point {
    int x, y;
};

void test(pirn_chan(int) c, struct point p);
void test(pirn_chan(int) c, struct point p)
{
    pirn_chan_send(c, p); // line-of-error
}
