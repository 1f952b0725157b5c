/* SPDX-License-Identifier: MIT */
// expect-error: a pointer is passed for a bool
#include <pirn.h>

void worker(bool b);

void test(int *p);
void test(int *p)
{
    pirn_go(worker, p); // line-of-error
}
