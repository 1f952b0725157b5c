/* SPDX-License-Identifier: MIT */
// expect-error: argument 2 of worker is no scalar of at most 8 bytes
#include <pirn.h>

int worker(const char *format, ...);

void test(void);
void test(void)
{
    pirn_go(worker, "%Lf", 1.0L); // line-of-error
}
