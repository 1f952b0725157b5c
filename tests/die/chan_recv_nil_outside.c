/* SPDX-License-Identifier: MIT */
/*
 * A NULL channel would block for ever.
 * expect-exit: 2
 * expect-first-line: panic: pirn_chan_recv would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_chan(int) c = NULL;
    if (pirn_chan_try_recv(c, NULL) != 0) {
        return 1;
    }
    (void)pirn_chan_recv(c, NULL);
    return 0;
}
