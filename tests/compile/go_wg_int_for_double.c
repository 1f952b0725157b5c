/* SPDX-License-Identifier: MIT */
// expect-error: pirn_wg_go\(wg, worker, 1\)
// expect-error: pirn_integer_argument_
#include <pirn.h>

void worker(double d);

void test(pirn_wg *wg);
void test(pirn_wg *wg)
{
    pirn_wg_go(wg, worker, 1); // line-of-error
}
