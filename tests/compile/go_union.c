/* SPDX-License-Identifier: MIT */
// expect-error: argument 1 of worker is no scalar of at most 8 bytes
#include <pirn.h>

union u {
    int a;
    float b;
};
void worker(union u u);

void test(union u u);
void test(union u u)
{
    pirn_go(worker, u); // line-of-error
}
