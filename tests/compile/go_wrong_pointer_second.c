/* SPDX-License-Identifier: MIT */
// expect-error-gcc: argument 2 of .worker. from incompatible pointer type
// expect-error-clang: incompatible pointer types passing
// expect-error-clang: worker
// The pragma: it must not compile without -Werror either.
#include <pirn.h>
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"

struct a;
struct b;
void worker(int n, struct a *p);

void test(struct b *p);
void test(struct b *p)
{
    pirn_go(worker, 1, p); // line-of-error
}
