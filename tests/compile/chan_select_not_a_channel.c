/* SPDX-License-Identifier: MIT */
// expect-error-gcc: subscripted value
// expect-error-clang: subscripted value
#include <pirn.h>

void test(int *p);
void test(int *p)
{
    (void)pirn_select(PIRN_RECV(p, NULL), PIRN_DEFAULT); // line-of-error
}
