/* SPDX-License-Identifier: MIT */
/*
 * While a thread of the program's own lives it might wake somebody; 500 ms later it has ended, and
 * the deadlock is reported.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * procs: 1,4
 * timeout: 5
 */
#include <pirn.h>
#include <pthread.h>
#include <time.h>

static void *sleeper(void *arg)
{
    (void)arg;
    nanosleep(&(struct timespec){.tv_nsec = 500 * 1000 * 1000}, NULL);
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
