/* SPDX-License-Identifier: MIT */
// expect-error-gcc: incompatible pointer type
// expect-error-clang: incompatible pointer types
// The pragma: it must not compile without -Werror either.
#include <pirn.h>
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void worker(void);

void test(int *p);
void test(int *p)
{
    pirn_wg_go(p, worker); // line-of-error
}
