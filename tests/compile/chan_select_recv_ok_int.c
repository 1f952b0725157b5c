/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error: incompatible pointer type
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void test(pirn_chan(int) c, int *ok);
void test(pirn_chan(int) c, int *ok)
{
    (void)pirn_select(PIRN_RECV_OK(c, NULL, ok), PIRN_DEFAULT); // line-of-error
}
