/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error: incompatible pointer type
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

struct point;
struct other;

void test(pirn_chan(struct point *) c, struct other *p);
void test(pirn_chan(struct point *) c, struct other *p)
{
    (void)pirn_select(PIRN_SEND(c, p), PIRN_DEFAULT); // line-of-error
}
