/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: incompatible pointer type
// expect-error-clang: incompatible pointer types
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void test(pirn_chan(pirn_chan(int)) c, pirn_chan(long) d);
void test(pirn_chan(pirn_chan(int)) c, pirn_chan(long) d)
{
    pirn_chan_send(c, d); // line-of-error
}
