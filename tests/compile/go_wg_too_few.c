/* SPDX-License-Identifier: MIT */
// expect-error: too few arguments to function
// expect-error: worker
#include <pirn.h>

void worker(int n);

void test(pirn_wg *wg);
void test(pirn_wg *wg)
{
    pirn_wg_go(wg, worker); // line-of-error
}
