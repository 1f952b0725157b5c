/* SPDX-License-Identifier: MIT */
// expect-error-gcc: invalid initializer
// expect-error-clang: incompatible type .int.
#include <pirn.h>

struct point {
    int x, y;
};

void test(pirn_chan(struct point) c);
void test(pirn_chan(struct point) c)
{
    (void)pirn_chan_send_until(c, 5, PIRN_NEVER); // line-of-error
}
