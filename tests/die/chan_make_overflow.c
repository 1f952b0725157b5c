/* SPDX-License-Identifier: MIT */
/*
 * The bytes of the buffer are more than a size_t can say.
 * expect-exit: 2
 * expect-first-line: panic: makechan: size out of range
 */
#include <pirn.h>

int main(void)
{
    struct large {
        char a[1 << 20];
    };
    pirn_chan(struct large) c = pirn_chan_make(struct large, (size_t)1 << 45);
    pirn_chan_release(c);
    return 0;
}
