/* SPDX-License-Identifier: MIT */
// expect-error-gcc: incompatible type for argument 1 of .worker.
// expect-error-clang: passing .int \*. to parameter of incompatible type .double.
// expect-error-clang: worker
#include <pirn.h>

void worker(double d);

void test(int *p);
void test(int *p)
{
    pirn_go(worker, p); // line-of-error
}
