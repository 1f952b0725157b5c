/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_cond_wait would block, and no runtime runs
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_mutex m;
static pirn_cond c;
static pirn_wg wg;

static void last_word(const char *message)
{
    (void)message;
    pirn_wg_add(&wg, 1);
    pirn_cond_signal(&c);
    pirn_mutex_unlock(&m);
    say_last(pirn_mutex_try_lock(&m));
}

static void mistake(void)
{
    pirn_mutex_lock(&m);
    pirn_cond_wait(&c, &m);
}

int main(void)
{
    return late(last_word, mistake);
}
