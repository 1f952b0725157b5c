/* SPDX-License-Identifier: MIT */
/*
 * Rule R10: pthread_exit would take the thread from under the scheduler.
 * expect-exit: 2
 * expect-first-line: fatal error: pthread_exit, or a cancelled thread, in goroutine 1
 * skip-in: asan the sanitizer does not know whose stack it is
 * skip-in: tsan the sanitizer ends there itself
 * expect-stderr-regex: ^goroutine 1 \[running\] main:$
 */
#include <pirn.h>
#include <pthread.h>

static int start(void *arg)
{
    pthread_exit(arg);
}

int main(void)
{
    return pirn_run(start, NULL);
}
