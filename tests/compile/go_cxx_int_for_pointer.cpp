/* SPDX-License-Identifier: MIT */
// expect-error: worker
#include <pirn.h>

void worker(int *p);

void test(int n);
void test(int n)
{
    pirn_go(worker, n); // line-of-error
}
