/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: makes integer from pointer
// expect-error-clang: incompatible pointer to integer
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wint-conversion"

void test(pirn_chan(int) c);
void test(pirn_chan(int) c)
{
    (void)pirn_select(c); // line-of-error
}
