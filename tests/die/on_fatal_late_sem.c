/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_sem_acquire would block, and no runtime runs
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_sem s;

static void last_word(const char *message)
{
    (void)message;
    pirn_sem_release(&s, 1);
    say_last(pirn_sem_try_acquire(&s, 1));
}

static void mistake(void)
{
    pirn_sem_acquire(&s, 1);
}

int main(void)
{
    return late(last_word, mistake);
}
