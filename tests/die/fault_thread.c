/* SPDX-License-Identifier: MIT */
/*
 * A fault of a thread of the program's own is as without pirn: not a word.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \A\Z
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 * skip-in: ubsan the sanitizer finds it first
 */
#include <pirn.h>
#include <pthread.h>
#include <unistd.h>

static void *thread(void *arg)
{
    *(volatile int *)arg = 1;
    return NULL;
}

static int start(void *arg)
{
    pthread_t t;
    pthread_create(&t, NULL, thread, arg);
    pthread_join(t, NULL);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
