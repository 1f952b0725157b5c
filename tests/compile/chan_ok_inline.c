// expect-ok
// also: -Wconversion -Wshadow
// also: -std=gnu17 -Wconversion -Wshadow -O0
/* SPDX-License-Identifier: MIT */
/* In a header of the program's own, more than once in a program. */
#include "chan_inline.h"

int test(pirn_chan(int) from, pirn_chan(int) to);
int test(pirn_chan(int) from, pirn_chan(int) to)
{
    return relay(from, to) + first_of(from, to);
}
