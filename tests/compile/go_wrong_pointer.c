/* SPDX-License-Identifier: MIT */
// expect-error-gcc: argument 1 of .worker. from incompatible pointer type
// expect-error-clang: incompatible pointer types passing .long \*. to parameter of type .int \*.
// expect-error-clang: worker
// The pragma: it must not compile without -Werror either.
#include <pirn.h>
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void worker(int *p);

void test(long *p);
void test(long *p)
{
    pirn_go(worker, p); // line-of-error
}
