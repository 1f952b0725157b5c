/* SPDX-License-Identifier: MIT */
// expect-error-gcc: incompatible type for argument 1 of .worker.
// expect-error-clang: passing .double. to parameter of incompatible type
// expect-error-clang: worker
#include <pirn.h>

void worker(int *p);

void test(void);
void test(void)
{
    pirn_go(worker, 0.0); // line-of-error
}
