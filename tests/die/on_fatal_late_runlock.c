/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: fatal error: sync: RUnlock of unlocked RWMutex
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_rwmutex m;
static pirn_wg wg;

static void last_word(const char *message)
{
    (void)message;
    pirn_wg_add(&wg, 1);
    say_last(pirn_rwmutex_try_lock(&m));
}

static void mistake(void)
{
    pirn_rwmutex_runlock(&m);
}

int main(void)
{
    return late(last_word, mistake);
}
