/* SPDX-License-Identifier: MIT */
/*
 * A wait with a deadline, and no runtime that could end it before. What need not wait, and what is too
 * late already, is allowed.
 * expect-exit: 2
 * expect-first-line: panic: pirn_chan_recv_until would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    pirn_chan_send(c, 1);
    if (pirn_chan_recv_until(c, NULL, PIRN_NEVER)
        || pirn_chan_recv_until(c, NULL, 0) != -ETIMEDOUT) {
        return 1;
    }
    return pirn_chan_recv_until(c, NULL, pirn_deadline(3600 * PIRN_SEC));
}
