/* SPDX-License-Identifier: MIT */
/*
 * What need not wait is allowed without a runtime; what would block is not.
 * expect-exit: 2
 * expect-first-line: panic: pirn_chan_recv would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_chan_send(c, 1);
    if (pirn_chan_get(c) != 1) {
        return 1;
    }
    (void)pirn_chan_get(c);
    return 0;
}
