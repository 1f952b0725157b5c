/* SPDX-License-Identifier: MIT */
/*
 * An abort() of a thread of the program's own is as without pirn: not a word.
 * expect-signal: SIGABRT
 * expect-stderr-regex: \A\Z
 */
#include <pirn.h>
#include <pthread.h>
#include <stdlib.h>

static void *thread(void *arg)
{
    (void)arg;
    abort();
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
