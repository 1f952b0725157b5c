/* SPDX-License-Identifier: MIT */
// expect-error: worker returns neither nothing nor a scalar of at most 8 bytes
#include <pirn.h>

long double worker(void);

void test(void);
void test(void)
{
    pirn_go(worker); // line-of-error
}
