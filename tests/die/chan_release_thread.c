/* SPDX-License-Identifier: MIT */
/*
 * One that waits there is a thread of the program's own: it has no number.
 * expect-exit: 2
 * expect-first-line: panic: release of the last reference to a channel on which a thread waits
 * timeout: 10
 */
#include <pirn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static pirn_chan(int) c;
static atomic_int tid;

static void *receiver(void *arg)
{
    atomic_store(&tid, gettid());
    (void)pirn_chan_recv(c, NULL);
    return arg;
}

/* From the moment it has told its number it sleeps nowhere else. */
static bool sleeps(void)
{
    char path[64], state = 0;
    int id = atomic_load(&tid);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    FILE *f = id ? fopen(path, "r") : NULL;
    if (f) {
        (void)!fscanf(f, "%*d (%*[^)]) %c", &state);
        fclose(f);
    }
    return state == 'S';
}

int main(void)
{
    pthread_t t;
    c = pirn_chan_make(int, 0);
    if (pirn_start(&(pirn_config){0}) || pthread_create(&t, NULL, receiver, NULL)) {
        return 1;
    }
    while (!sleeps()) {
        usleep(1000);
    }
    pirn_chan_release(c);
    return 0;
}
