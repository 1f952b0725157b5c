/* SPDX-License-Identifier: MIT */
// expect-error-gcc: argument 1 of .worker. from incompatible pointer type
// expect-error-clang: incompatible pointer types passing
// expect-error-clang: worker
// The pragma: it must not compile without -Werror either.
#include <pirn.h>
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void worker(int *p);

void test(pirn_wg *wg, long *p);
void test(pirn_wg *wg, long *p)
{
    pirn_wg_go(wg, worker, p); // line-of-error
}
