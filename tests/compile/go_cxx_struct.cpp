/* SPDX-License-Identifier: MIT */
// expect-error: no scalar of at most 8 bytes
#include <pirn.h>

struct pair {
    long a, b;
};
void worker(pair p);

void test(pair p);
void test(pair p)
{
    pirn_go(worker, p); // line-of-error
}
