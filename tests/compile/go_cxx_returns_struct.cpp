/* SPDX-License-Identifier: MIT */
// expect-error: returns neither nothing nor a scalar
#include <pirn.h>

struct pair {
    long a, b;
};
pair worker(int n);

void test();
void test()
{
    pirn_go(worker, 1); // line-of-error
}
