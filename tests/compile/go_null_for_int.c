/* SPDX-License-Identifier: MIT */
// expect-error-gcc: argument 1 of .worker. makes integer from pointer
// expect-error-clang: incompatible pointer to integer conversion passing
// expect-error-clang: worker
// The pragma: it must not compile without -Werror either.
#include <pirn.h>
#pragma GCC diagnostic ignored "-Wint-conversion"

void worker(int n);

void test(void);
void test(void)
{
    pirn_go(worker, NULL); // line-of-error
}
