/* SPDX-License-Identifier: MIT */
// expect-error: at most 6 arguments can be passed to printf
#include <pirn.h>

int printf(const char *, ...);

void test(void);
void test(void)
{
    pirn_go(printf, "%d", 1, 2, 3, 4, 5, 6, 7, 8, 9); // line-of-error
}
