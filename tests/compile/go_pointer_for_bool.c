/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, p\)
// expect-error-gcc: pirn_pointer_argument_
// expect-error-clang: "pointer argument"
#include <pirn.h>

void worker(bool b);

void test(int *p);
void test(int *p)
{
    pirn_go(worker, p); // line-of-error
}
