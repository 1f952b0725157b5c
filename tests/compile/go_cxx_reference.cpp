/* SPDX-License-Identifier: MIT */
// expect-error: no scalar of at most 8 bytes
#include <pirn.h>

void worker(int &n);

void test(int n);
void test(int n)
{
    pirn_go(worker, n); // line-of-error
}
