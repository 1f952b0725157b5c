/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: sync: negative WaitGroup counter
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_wg wg;

static void last_word(const char *message)
{
    (void)message;
    pirn_wg_add(&wg, 1);
    pirn_wg_done(&wg);
    pirn_wg_wait(&wg);
    say_last(true);
}

static void mistake(void)
{
    pirn_wg_done(&wg);
}

int main(void)
{
    return late(last_word, mistake);
}
