/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, 1\.0\)
// expect-error-gcc: float-equal
// expect-error-clang: pirn_floating_argument_
#include <pirn.h>

void worker(bool b);

void test(void);
void test(void)
{
    pirn_go(worker, 1.0); // line-of-error
}
