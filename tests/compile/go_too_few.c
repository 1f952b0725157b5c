/* SPDX-License-Identifier: MIT */
// expect-error: too few arguments to function
// expect-error: worker
#include <pirn.h>

void worker(int id, int n);

void test(void);
void test(void)
{
    pirn_go(worker, 1); // line-of-error
}
