/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error: incompatible pointer type
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void take(pirn_chan(long) c);

void test(pirn_chan(int) c);
void test(pirn_chan(int) c)
{
    pirn_go(take, c); // line-of-error
}
