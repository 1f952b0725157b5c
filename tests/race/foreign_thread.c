/* SPDX-License-Identifier: MIT */
/*
 * A thread of the program's own beside a goroutine.
 *
 * expect-race: thread by thread, goroutine by goroutine
 * procs: 1,2,4
 */
#include <pthread.h>

#include "race.h"

int n;
volatile int race_step;

static void *thread(void *arg)
{
    (void)arg;
    n = 1;
    reached(1);
    return NULL;
}

static void goroutine(void)
{
    until(1);
    n = 2;
}

int main(void)
{
    pthread_t t;
    pirn_wg wg = {0};
    if (pirn_start(&(pirn_config){0}) || pthread_create(&t, NULL, thread, NULL)) {
        return 1;
    }
    pirn_wg_go(&wg, goroutine);
    pirn_wg_wait(&wg);
    pthread_join(t, NULL);
    return pirn_stop();
}
