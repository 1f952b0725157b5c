/* SPDX-License-Identifier: MIT */
// expect-error: worker returns neither nothing nor a scalar of at most 8 bytes
#include <pirn.h>

struct pair {
    long a, b;
};
struct pair worker(int n);

void test(void);
void test(void)
{
    pirn_go(worker, 1); // line-of-error
}
