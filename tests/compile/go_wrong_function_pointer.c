/* SPDX-License-Identifier: MIT */
// expect-error-gcc: argument 1 of .worker. from incompatible pointer type
// expect-error-clang: incompatible function pointer types passing
// expect-error-clang: worker
// The pragma: it must not compile without -Werror either.
#include <pirn.h>
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

void worker(void (*f)(int));
void callback(char *p);

void test(void);
void test(void)
{
    pirn_go(worker, callback); // line-of-error
}
