/* SPDX-License-Identifier: MIT */
/*
 * MemorySanitizer: a goroutine decides by what nobody has written, and got it through a channel.
 * expect-exit: 1
 * expect-stderr: WARNING: MemorySanitizer: use-of-uninitialized-value
 * expect-stderr-regex: #\d+ 0x[0-9a-f]+ in receives
 * procs: 1,4
 */
#include <pirn.h>
#include <stdlib.h>

static void receives(pirn_chan(int) c)
{
    if (pirn_chan_get(c) == 4711)
        abort();
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0);
    int *p = malloc(sizeof *p);
    pirn_wg_go(&wg, receives, c);
    pirn_yield();
    pirn_chan_send(c, *p);
    pirn_wg_wait(&wg);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
