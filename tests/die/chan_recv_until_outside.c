/* SPDX-License-Identifier: MIT */
/*
 * A wait with a deadline, and no runtime that could end it before.
 * expect-exit: 2
 * expect-stderr-regex: ^panic: .*pirn_chan_recv_until
 */
#include <pirn.h>

int main(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    return pirn_chan_recv_until(c, NULL, pirn_deadline(3600 * PIRN_SEC));
}
