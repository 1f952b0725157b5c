/* SPDX-License-Identifier: MIT */
/*
 * SIGQUIT while all sleep.
 * expect-exit: 2
 * expect-first-line: SIGQUIT: quit
 * expect-stderr-regex: ^goroutine 1 \[sleep.*\] main:$
 * expect-stderr-regex: ^goroutine \d+ \[sleep.*\] sleeps:$
 * procs: 1,4
 * timeout: 20
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <pirn.h>

static void *asks(void *arg)
{
    pirn_metrics_v1 m = {0};
    while (m.threads == 0 || m.threads_idle < m.threads) {
        usleep(1000);
        pirn_metrics(&m);
    }
    kill(getpid(), SIGQUIT);
    return arg;
}

static void sleeps(void)
{
    pirn_sleep(1000 * PIRN_SEC);
}

static int start(void *arg)
{
    pthread_t t;
    (void)arg;
    pirn_go(sleeps);
    pirn_yield();
    if (pthread_create(&t, NULL, asks, NULL)) {
        return 1;
    }
    pirn_sleep(1000 * PIRN_SEC);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
