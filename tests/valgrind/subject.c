/* SPDX-License-Identifier: MIT */
/*
 * For run. Goroutines and the main thread make frames of sizes that valgrind has no special case for,
 * by turns, and goroutines switch, while signals come: none of it is wrong. With "planted" one of them then looks
 * at what nobody has written and at what it has freed.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <pirn.h>

static volatile int handled;

static void handler(int sig)
{
    (void)sig;
    handled = handled + 1;
}

/* 456 is as good as 457: not one of 8, 16, 32, 112 and so on. */
__attribute__((noinline)) static int frames(int depth)
{
    volatile char frame[456];
    memset((char *)frame, depth, sizeof frame);
    return depth ? frames(depth - 1) + frame[depth] : frame[0];
}

static void works(int n)
{
    for (int i = 0; i < n; i++) {
        sched_yield(); /* another thread runs, and the next thing here is a frame */
        frames(i % 7);
        if (i % 16 == 0) {
            raise(SIGUSR1);
        }
        if (i % 16 == 8) {
            pirn_sleep(PIRN_MS / 10); /* to the thread's own stack, sooner or later */
        } else if (i % 3 == 0) {
            pirn_yield();
        }
    }
}

__attribute__((noinline)) static int planted(void)
{
    volatile int nobody_wrote_it;
    char *volatile freed = malloc(10);
    free(freed);
    if (nobody_wrote_it == 3) {
        pirn_yield();
    }
    return freed[3];
}

static int subject(void *arg)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 8; i++) {
        pirn_wg_go(&wg, works, 300);
    }
    pirn_wg_wait(&wg);
    if (arg) {
        planted();
    }
    return 0;
}

static atomic_bool done, failed;

static void *runs(void *arg)
{
    failed = pirn_run(subject, arg) != 0;
    done = true;
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argv;
    struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &sa, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, runs, argc > 1 ? &sa : NULL)) {
        return 1;
    }
    while (!done) { /* meanwhile: valgrind knows this stack by itself */
        frames(3);
        sched_yield();
    }
    return pthread_join(thread, NULL) || failed;
}
