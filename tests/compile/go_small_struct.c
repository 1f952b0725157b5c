/* SPDX-License-Identifier: MIT */
// expect-error: argument 2 of worker is no scalar of at most 8 bytes
#include <pirn.h>

struct small {
    int a;
};
void worker(int n, struct small s);

void test(struct small s);
void test(struct small s)
{
    pirn_go(worker, 1, s); // line-of-error
}
