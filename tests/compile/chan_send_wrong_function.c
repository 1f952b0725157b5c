/* SPDX-License-Identifier: MIT */
// The pragma: it must not compile without -Werror either.
// expect-error-gcc: incompatible pointer type
// expect-error-clang: incompatible function pointer types
#include <pirn.h>

#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void callback(char *p);

void test(pirn_chan(void (*)(int)) c);
void test(pirn_chan(void (*)(int)) c)
{
    pirn_chan_send(c, callback); // line-of-error
}
