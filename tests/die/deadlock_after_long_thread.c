/* SPDX-License-Identifier: MIT */
/*
 * A thread of the program's own ends after 3.6 s, just after a look of the detector: a deadlock is
 * reported within a few seconds after that too.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * timeout: 9
 */
#include <pirn.h>
#include <pthread.h>
#include <time.h>

static void *sleeper(void *arg)
{
    (void)arg;
    nanosleep(&(struct timespec){.tv_sec = 3, .tv_nsec = 600 * 1000 * 1000}, NULL);
    return NULL;
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    pthread_t t;
    (void)arg;
    if (pthread_create(&t, NULL, sleeper, NULL) || pthread_detach(t)) {
        return 1;
    }
    pirn_wg_add(&wg, 1);
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
