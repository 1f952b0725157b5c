/* SPDX-License-Identifier: MIT */
// expect-error-gcc: void value not ignored|invalid use of void
// expect-error-clang: incompatible type .void.
#include <pirn.h>

void nothing(void);

void test(pirn_chan(int) c);
void test(pirn_chan(int) c)
{
    pirn_chan_send(c, nothing()); // line-of-error
}
