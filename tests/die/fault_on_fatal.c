/* SPDX-License-Identifier: MIT */
/*
 * The program's own last word.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at address 0x0: NULL, or near it\n\tpc=.*\nlast word\n\ngoroutine 1
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 * skip-in: ubsan the sanitizer finds it first
 */
#include <pirn.h>

#include "last_word.h"

static void last_word(const char *message)
{
    say_last(!strcmp(message, "SIGSEGV at address 0x0: NULL, or near it"));
}

static int start(void *arg)
{
    *(volatile int *)arg = 1;
    return 0;
}

int main(void)
{
    return with_last_word(last_word, start);
}
