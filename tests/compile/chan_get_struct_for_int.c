/* SPDX-License-Identifier: MIT */
// expect-error-gcc: invalid operands to binary
// expect-error-clang: invalid operands to binary
#include <pirn.h>

struct point {
    int x, y;
};

void test(pirn_chan(struct point) c);
void test(pirn_chan(struct point) c)
{
    int v = pirn_chan_get(c) + 1; // line-of-error
}
