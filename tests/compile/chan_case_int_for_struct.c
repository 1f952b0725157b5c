/* SPDX-License-Identifier: MIT */
// A case of a select that is built at run time.
// expect-error: incompatible type
#include <pirn.h>

struct point {
    int x, y;
};

void test(pirn_chan(struct point) c, pirn_case *k);
void test(pirn_chan(struct point) c, pirn_case *k)
{
    *k = (pirn_case)PIRN_SEND(c, 5); // line-of-error
}
