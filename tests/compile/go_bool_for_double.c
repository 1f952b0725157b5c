/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go\(worker, b\)
// expect-error: pirn_integer_argument_
#include <pirn.h>

void worker(double d);

void test(bool b);
void test(bool b)
{
    pirn_go(worker, b); // line-of-error
}
