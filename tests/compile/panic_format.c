/* SPDX-License-Identifier: MIT */
// expect-error: format
#include <pirn.h>

void test(char *text);
void test(char *text)
{
    pirn_panic("%d", text); // line-of-error
}
