/* SPDX-License-Identifier: MIT */
/*
 * It could be done at once, so it is: no 0.
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 */
#include <pirn.h>

int main(void)
{
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_chan_close(c);
    (void)pirn_chan_try_send(c, 1);
    return 0;
}
