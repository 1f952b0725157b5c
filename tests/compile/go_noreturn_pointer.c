/* SPDX-License-Identifier: MIT */
// expect-error-gcc: &worker points to a noreturn or const function
// gcc ends the function after a call through such a pointer; clang does not.
#include <pirn.h>

_Noreturn void worker(int a, int b);

void test(void);
void test(void)
{
    pirn_go(worker, 1, 2);
    pirn_go(&worker, 1, 2); // line-of-error
}
