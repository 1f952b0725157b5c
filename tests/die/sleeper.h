/* SPDX-License-Identifier: MIT */
/* Main waits for ever, beside a thread of the program's own that sleeps for a time and then ends. */
#ifndef TESTS_DIE_SLEEPER_H
#define TESTS_DIE_SLEEPER_H

#include <pirn.h>
#include <pthread.h>
#include <time.h>

static void *sleeper(void *timespec)
{
    nanosleep(timespec, NULL);
    return NULL;
}

static int wait_beside_sleeper(void *timespec)
{
    pirn_wg wg = {0};
    pthread_t t;
    if (pthread_create(&t, NULL, sleeper, timespec) || pthread_detach(t)) {
        return 1;
    }
    pirn_wg_add(&wg, 1);
    pirn_wg_wait(&wg);
    return 0;
}

#endif
