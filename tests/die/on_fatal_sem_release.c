/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: semaphore: released more than can be held
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_sem s = PIRN_SEM_INIT(1);

static void last_word(const char *message)
{
    (void)message;
    say_last(pirn_sem_try_acquire(&s, 1) && !pirn_sem_try_acquire(&s, 1));
}

static int start(void *arg)
{
    (void)arg;
    pirn_sem_release(&s, INT64_MAX);
    return 0;
}

int main(void)
{
    return with_last_word(last_word, start);
}
