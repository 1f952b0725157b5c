/* SPDX-License-Identifier: MIT */
// expect-error: undeclared
// expect-error: worker
#include <pirn.h>

void test(void);
void test(void)
{
    pirn_go(worker, 1); // line-of-error
}
