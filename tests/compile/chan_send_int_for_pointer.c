/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: makes pointer from integer
// expect-error-clang: incompatible integer to pointer
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wint-conversion"

void test(pirn_chan(int *) c);
void test(pirn_chan(int *) c)
{
    pirn_chan_send(c, 1); // line-of-error
}
