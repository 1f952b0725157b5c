/* SPDX-License-Identifier: MIT */
// expect-error: pirn_go_start_|no matching function
#include <pirn.h>

void worker(int a, int b);

void test(int n);
void test(int n)
{
    pirn_defer(worker, n); // line-of-error
}
