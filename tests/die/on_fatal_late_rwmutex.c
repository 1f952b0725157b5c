/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_rwmutex_lock would block, and no runtime runs
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_rwmutex m;

static void last_word(const char *message)
{
    (void)message;
    pirn_rwmutex_runlock(&m);
    say_last(pirn_rwmutex_try_lock(&m));
}

static void mistake(void)
{
    pirn_rwmutex_rlock(&m);
    pirn_rwmutex_lock(&m);
}

int main(void)
{
    return late(last_word, mistake);
}
