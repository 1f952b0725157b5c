/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_barrier_wait would block, and no runtime runs
 * expect-stderr-regex: \A.*\nlast word\n
 * timeout: 10
 */
#include "last_word.h"

static pirn_barrier b;

static void last_word(const char *message)
{
    (void)message;
    pirn_barrier_init(&b, 1);
    say_last(pirn_barrier_wait(&b));
}

static void mistake(void)
{
    pirn_barrier_init(&b, 2);
    (void)pirn_barrier_wait(&b);
}

int main(void)
{
    return late(last_word, mistake);
}
