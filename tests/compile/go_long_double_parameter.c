/* SPDX-License-Identifier: MIT */
// expect-error-clang: increases floating-point precision: .*pirn_floating_argument_
// gcc can't be made to tell long double from double.
#include <pirn.h>

void worker(long double d);

void test(double d);
void test(double d)
{
    pirn_go(worker, d); // line-of-error
}
