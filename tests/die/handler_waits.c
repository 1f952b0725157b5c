/* SPDX-License-Identifier: MIT */
/*
 * Rule R8: a call that waits, by a signal handler that has interrupted the program's own code, is fatal: the
 * next handler would have the same stack.
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: a call into pirn that waits, from a signal handler\n\ngoroutine 1 \[running.*\] main:\n(.*\n)*?.*handler
 * procs: 1,4
 * skip-in: asan the sanitizer gives handlers a stack of its own
 * skip-in: tsan the sanitizer puts signals off until a call that it knows
 */
#include <pirn.h>
#include <signal.h>

static void handler(int sig)
{
    (void)sig;
    pirn_sleep(PIRN_MS);
}

static int start(void *arg)
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    (void)arg;
    if (sigaction(SIGUSR1, &sa, NULL))
        return 3;
    raise(SIGUSR1);
    return 4;
}

int main(void)
{
    return pirn_run(start, NULL);
}
