/* SPDX-License-Identifier: MIT */
// expect-error: pirn: argument 1 of worker is no scalar of at most 8 bytes
#include <pirn.h>

struct s {
    int a[4];
};
void worker(struct s s);

void test(int n, void *p);
void test(int n, void *p)
{
    (void)n;
    (void)p;
    struct s s = {{0}};
    pirn_defer(worker, s); // line-of-error
}
