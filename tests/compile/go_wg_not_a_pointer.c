/* SPDX-License-Identifier: MIT */
// expect-error-gcc: incompatible types
// expect-error-clang: incompatible type
#include <pirn.h>

void worker(void);

void test(pirn_wg wg);
void test(pirn_wg wg)
{
    pirn_wg_go(wg, worker); // line-of-error
}
