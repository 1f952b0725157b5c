/* SPDX-License-Identifier: MIT */
/*
 * Both the condition and the mutex are free, and nobody waits.
 * expect-exit: 2
 * expect-first-line: fatal error: sync: unlock of unlocked mutex
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_mutex m;
static pirn_cond c;

static void last_word(const char *message)
{
    (void)message;
    pirn_cond_broadcast(&c);
    say_last(pirn_mutex_try_lock(&m));
}

static int start(void *arg)
{
    (void)arg;
    pirn_cond_wait(&c, &m);
    return 0;
}

int main(void)
{
    return with_last_word(last_word, start);
}
