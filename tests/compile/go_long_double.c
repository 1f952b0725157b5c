/* SPDX-License-Identifier: MIT */
// expect-error: argument 1 of worker is no scalar of at most 8 bytes
#include <pirn.h>

void worker(long double d);

void test(void);
void test(void)
{
    pirn_go(worker, 1.0L); // line-of-error
}
