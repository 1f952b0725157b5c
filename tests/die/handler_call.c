/* SPDX-License-Identifier: MIT */
/*
 * Rule R8: a call into pirn by a signal handler that has interrupted pirn is fatal, and says so.
 * expect-signal: SIGABRT
 * expect-stderr-regex: \Afatal error: entry: a call into pirn from within pirn, or from a signal handler\n\ngoroutine 1 \[running.*\] main:\n
 * procs: 1,4
 * skip-in: tsan the sanitizer puts signals off until a call that it knows
 */
#include <pirn.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* A call that never waits: harmless where it has interrupted the program's own code. */
static void handler(int sig)
{
    (void)sig;
    pirn_metrics_v1 m;
    pirn_metrics(&m);
}

static int start(void *arg)
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    struct itimerspec often = {.it_interval = {0, 100000}, .it_value = {0, 100000}};
    pirn_metrics_v1 m;
    timer_t timer;
    (void)arg;
    pirn_lock_thread();
    ev.sigev_notify_thread_id = gettid();
    if (sigaction(SIGUSR1, &sa, NULL) || timer_create(CLOCK_MONOTONIC, &ev, &timer)
        || timer_settime(timer, 0, &often, NULL))
        return 3;
    for (pirn_ns end = pirn_now() + 20 * PIRN_SEC; pirn_now() < end;)
        for (int i = 0; i < 1000; i++)
            pirn_metrics(&m);
    return 4;
}

int main(void)
{
    return pirn_run(start, NULL);
}
