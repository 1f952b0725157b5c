/* SPDX-License-Identifier: MIT */
// expect-error-gcc: incompatible type for argument 1 of .worker.
// expect-error-clang: passing .double. to parameter of incompatible type .void \*.
// expect-error-clang: worker
#include <pirn.h>

void worker(void *p);

void test(void);
void test(void)
{
    pirn_go(worker, 1.5); // line-of-error
}
