/* SPDX-License-Identifier: MIT */
// expect-error: pirn_wg
#include <pirn.h>

void worker();

void test(int *p);
void test(int *p)
{
    pirn_wg_go(p, worker); // line-of-error
}
