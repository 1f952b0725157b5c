/* SPDX-License-Identifier: MIT */
/*
 * A SIGABRT that somebody sends is no abort() of the goroutine's: not a word.
 * expect-signal: SIGABRT
 * expect-stderr-regex: \A\Z
 * skip-in: tsan the sanitizer puts the signal off
 */
#include <pirn.h>
#include <signal.h>
#include <unistd.h>

static int start(void *arg)
{
    kill(getpid(), SIGABRT);
    pirn_sleep(10 * PIRN_SEC);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
