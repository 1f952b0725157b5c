/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: send on closed channel
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_chan(int) c;

static void last_word(const char *message)
{
    (void)message;
    say_last(pirn_chan_try_recv(c, NULL) == -1 && pirn_chan_len(c) == 0);
}

static int start(void *arg)
{
    (void)arg;
    c = pirn_chan_make(int, 0);
    pirn_chan_close(c);
    pirn_chan_send(c, 1);
    return 0;
}

int main(void)
{
    return with_last_word(last_word, start);
}
