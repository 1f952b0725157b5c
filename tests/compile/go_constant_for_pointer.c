/* SPDX-License-Identifier: MIT */
// expect-error-gcc: argument 1 of .worker. makes pointer from integer
// expect-error-clang: incompatible integer to pointer conversion passing .int. to parameter
// expect-error-clang: worker
// The pragma: it must not compile without -Werror either.
#include <pirn.h>
#pragma GCC diagnostic ignored "-Wint-conversion"

void worker(char *p);

void test(void);
void test(void)
{
    pirn_go(worker, 5); // line-of-error
}
