/* SPDX-License-Identifier: MIT */
/*
 * Fewer elements than can be counted, but no object is as large.
 * expect-exit: 2
 * expect-first-line: panic: makechan: size out of range
 */
#include <pirn.h>

int main(void)
{
    pirn_chan(long[1 << 10]) c = pirn_chan_make(long[1 << 10], (size_t)1 << 50);
    pirn_chan_release(c);
    return 0;
}
