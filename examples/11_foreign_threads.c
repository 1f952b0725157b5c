/* SPDX-License-Identifier: MIT */
/*
 * Goroutines in a program that has threads of its own: a library, a plugin, or a
 * server that grew up with pthreads.
 *
 * pirn_start() runs the runtime in the background, on threads that it makes. Any
 * thread may then spawn goroutines and wait for them: a wait in pirn blocks only
 * the thread that waits. pirn_stop() gives everything back.
 */
#include <pirn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define THREADS 4
#define JOBS 1000

static atomic_int finished;

static void job(int thread, int i)
{
    (void)thread;
    (void)i;
    atomic_fetch_add(&finished, 1);
}

/* An ordinary thread: it has no goroutine, so pirn_id() is 0 here. */
static void *thread_main(void *arg)
{
    int thread = *(int *)arg;
    pirn_wg wg = {0};
    for (int i = 0; i < JOBS; i++) {
        pirn_wg_go(&wg, job, thread, i);
    }
    pirn_wg_wait(&wg);
    return NULL;
}

static int as_goroutine(void *arg)
{
    (void)arg;
    return pirn_id() != 0 ? 42 : 0;
}

int main(void)
{
    pirn_config config = {.procs = 2}; /* zero, or leave it out: as many as there are CPUs */
    int err = pirn_start(&config);
    if (err < 0) {
        fprintf(stderr, "pirn_start: %s\n", strerror(-err)); /* errors are -errno */
        return 1;
    }
    pthread_t threads[THREADS];
    int number[THREADS];
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        if (pthread_create(&threads[i], NULL, thread_main, &number[i])) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    /* pirn_run() of a thread, while the runtime runs: calls a function as a goroutine, waits. */
    int answer = pirn_run(as_goroutine, NULL);
    printf("%d jobs of %d threads, and the answer is %d\n", finished, THREADS, answer);
    err = pirn_stop(); /* 0, or -EBUSY while a thread waits in pirn */
    return err == 0 && finished == THREADS * JOBS && answer == 42 ? 0 : 1;
}
