/* SPDX-License-Identifier: MIT */
/*
 * A NULL channel would block for ever.
 * expect-exit: 2
 * expect-first-line: panic: pirn_chan_send would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_chan(int) c = NULL;
    if (pirn_chan_try_send(c, 1) != 0) {
        return 1;
    }
    pirn_chan_send(c, 1);
    return 0;
}
