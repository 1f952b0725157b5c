/* SPDX-License-Identifier: MIT */
// expect-error: argument 1 of worker is no scalar of at most 8 bytes
#include <pirn.h>

void worker(float _Complex c);

void test(float _Complex c);
void test(float _Complex c)
{
    pirn_go(worker, c); // line-of-error
}
