/* SPDX-License-Identifier: MIT */
// expect-error: too many arguments to function
// expect-error: worker
#include <pirn.h>

void worker(void);

void test(void);
void test(void)
{
    pirn_go(worker, 1); // line-of-error
}
