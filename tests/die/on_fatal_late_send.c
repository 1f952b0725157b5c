/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_chan_send would block, and no runtime runs
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_chan(int) c;

static void last_word(const char *message)
{
    (void)message;
    say_last(pirn_chan_try_send(c, 1) == 0 && pirn_chan_get(c) == 1);
}

static void mistake(void)
{
    c = pirn_chan_make(int, 1);
    pirn_chan_send(c, 1);
    pirn_chan_send(c, 2);
}

int main(void)
{
    return late(last_word, mistake);
}
