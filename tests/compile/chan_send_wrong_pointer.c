/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: incompatible pointer type
// expect-error-clang: incompatible pointer types
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void test(pirn_chan(int *) c, long *p);
void test(pirn_chan(int *) c, long *p)
{
    pirn_chan_send(c, p); // line-of-error
}
