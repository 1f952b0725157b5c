/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_chan_recv would block, and no runtime runs
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_chan(int) c;
static pirn_wg wg;

static void last_word(const char *message)
{
    (void)message;
    pirn_wg_add(&wg, 1);
    say_last(pirn_chan_try_recv(c, NULL) == 0);
}

static void mistake(void)
{
    (void)pirn_chan_recv(c, NULL);
}

int main(void)
{
    return late(last_word, mistake);
}
