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
    int v;
    say_last(pirn_select(PIRN_RECV(c, &v), PIRN_DEFAULT) == 0
             && pirn_select(PIRN_RECV(d, &v), PIRN_DEFAULT) == 1);
}

static int start(void *arg)
{
    (void)arg;
    c = pirn_chan_make(int, 0);
    d = pirn_chan_make(int, 0);
    pirn_chan_close(c);
    (void)pirn_select(PIRN_RECV(d, NULL), PIRN_SEND(c, 1));
    return 0;
}

int main(void)
{
    return with_last_word(last_word, start);
}
