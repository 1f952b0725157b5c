/* SPDX-License-Identifier: MIT */
/*
 * Locks that belong to threads, held over a wait or not. Run by tests/locks/run, which knows what must be
 * reported: what is below in `wrong`, each once, and nothing of `right`.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <pirn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void right(void)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&other);
        pthread_mutex_unlock(&other);
        pirn_yield();
        flockfile(stdout);
        funlockfile(stdout);
        pirn_sleep(PIRN_US);
    }
}

/* Unlocked by another thread than locked it: the reason for all this. glibc lets a normal one. */
static void wrong(pirn_chan(int) c)
{
    pthread_mutex_lock(&mutex);
    pirn_chan_recv(c, NULL);
    pirn_sleep(PIRN_US); /* once is enough */
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    pirn_yield();
    pthread_rwlock_unlock(&rwlock);
    flockfile(stdin);
    pirn_sleep(PIRN_MS);
    funlockfile(stdin);
}

static int run(void *arg)
{
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0);
    for (int i = 0; i < 4; i++)
        pirn_wg_go(&wg, right);
    if (arg)
        pirn_wg_go(&wg, wrong, c);
    pirn_sleep(PIRN_MS);
    pirn_chan_close(c);
    pirn_wg_wait(&wg);
    pirn_chan_release(c);
    return 0;
}

int main(int argc, char **argv)
{
    return pirn_run(run, argc > 1 && !strcmp(argv[1], "wrong") ? argv : NULL);
}
