/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error: incompatible pointer type
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void test(pirn_chan(pirn_chan(int)) c, pirn_chan(long) d);
void test(pirn_chan(pirn_chan(int)) c, pirn_chan(long) d)
{
    (void)pirn_select(PIRN_SEND(c, d), PIRN_DEFAULT); // line-of-error
}
