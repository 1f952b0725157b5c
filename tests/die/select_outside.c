/* SPDX-License-Identifier: MIT */
/*
 * What need not wait is allowed without a runtime; what would block is not.
 * expect-exit: 2
 * expect-first-line: panic: pirn_select would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 1), d = pirn_chan_make(int, 1);
    if (pirn_select(PIRN_RECV(c, NULL), PIRN_SEND(d, 1)) != 1
        || pirn_select(PIRN_RECV(c, NULL), PIRN_SEND(d, 1), PIRN_DEFAULT) != 2) {
        return 1;
    }
    (void)pirn_select(PIRN_RECV(c, NULL), PIRN_SEND(d, 1));
    return 0;
}
