/* SPDX-License-Identifier: MIT */
/*
 * All channels of the select are free.
 * expect-exit: 2
 * expect-first-line: panic: pirn_select would block, and no runtime runs
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_chan(int) c, d;

static void last_word(const char *message)
{
    (void)message;
    pirn_chan_close(c);
    pirn_chan_close(d);
    say_last(pirn_chan_try_recv(c, NULL) == -1 && pirn_chan_try_recv(d, NULL) == -1);
}

static void mistake(void)
{
    c = pirn_chan_make(int, 0);
    d = pirn_chan_make(int, 0);
    (void)pirn_select(PIRN_RECV(c, NULL), PIRN_SEND(d, 1));
}

int main(void)
{
    return late(last_word, mistake);
}
