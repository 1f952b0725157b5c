/* SPDX-License-Identifier: MIT */
// expect-error: at most 6 arguments can be passed to worker
#include <pirn.h>

void worker(int a, int b, int c, int d, int e, int f, int g);

void test(pirn_wg *wg);
void test(pirn_wg *wg)
{
    pirn_wg_go(wg, worker, 1, 2, 3, 4, 5, 6, 7); // line-of-error
}
