/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: makes integer from pointer
// expect-error-clang: incompatible pointer to integer
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wint-conversion"

void test(pirn_chan(int) c, int *p);
void test(pirn_chan(int) c, int *p)
{
    (void)pirn_select(PIRN_SEND(c, p), PIRN_DEFAULT); // line-of-error
}
