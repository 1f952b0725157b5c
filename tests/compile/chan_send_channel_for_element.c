/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: makes integer from pointer
// expect-error-clang: incompatible pointer to integer
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wint-conversion"

void test(pirn_chan(int) c, pirn_chan(pirn_chan(int)) d);
void test(pirn_chan(int) c, pirn_chan(pirn_chan(int)) d)
{
    pirn_chan_send(c, d); // line-of-error
}
