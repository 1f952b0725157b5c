/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: incompatible pointer type
// expect-error-clang: incompatible pointer types
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

struct point;
struct other;

void test(pirn_chan(struct point *) c, struct other *p);
void test(pirn_chan(struct point *) c, struct other *p)
{
    pirn_chan_send(c, p); // line-of-error
}
