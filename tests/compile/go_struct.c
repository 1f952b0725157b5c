/* SPDX-License-Identifier: MIT */
// expect-error: argument 1 of worker is no scalar of at most 8 bytes
#include <pirn.h>

struct pair {
    long a, b;
};
void worker(struct pair p);

void test(struct pair p);
void test(struct pair p)
{
    pirn_go(worker, p); // line-of-error
}
