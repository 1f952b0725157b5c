/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error: incompatible pointer type
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void test(pirn_chan(int *) c, long *p);
void test(pirn_chan(int *) c, long *p)
{
    (void)pirn_chan_try_send(c, p); // line-of-error
}
