/* SPDX-License-Identifier: MIT */
// expect-error: worker
#include <pirn.h>

void worker(int *p);

void test(long *p);
void test(long *p)
{
    pirn_go(worker, p); // line-of-error
}
