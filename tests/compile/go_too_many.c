/* SPDX-License-Identifier: MIT */
// expect-error: too many arguments to function
// expect-error: worker
#include <pirn.h>

void worker(int id);

void test(void);
void test(void)
{
    pirn_go(worker, 1, 2); // line-of-error
}
