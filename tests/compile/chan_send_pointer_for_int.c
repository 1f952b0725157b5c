/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: makes integer from pointer
// expect-error-clang: incompatible pointer to integer
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wint-conversion"

void test(pirn_chan(int) c, int *p);
void test(pirn_chan(int) c, int *p)
{
    pirn_chan_send(c, p); // line-of-error
}
