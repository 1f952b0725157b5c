/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_chan(int) c, d;

static void last_word(const char *message)
{
    (void)message;
    say_last(pirn_chan_try_recv(c, NULL) == -1 && pirn_chan_try_recv(d, NULL) == 0);
}

static void mistake(void)
{
    c = pirn_chan_make(int, 0);
    d = pirn_chan_make(int, 0);
    pirn_chan_close(c);
    (void)pirn_select(PIRN_RECV(d, NULL), PIRN_SEND(c, 1));
}

int main(void)
{
    return late(last_word, mistake);
}
