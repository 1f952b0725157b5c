/* SPDX-License-Identifier: MIT */
// expect-error-gcc: array of voids
// expect-error-clang: incomplete element type
#include <pirn.h>

void test(void);
void test(void)
{
    (void)pirn_chan_make(void, 1); // line-of-error
}
