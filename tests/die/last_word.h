/* SPDX-License-Identifier: MIT */
/*
 * An on_fatal that uses the object whose misuse is being reported: it must not find it locked.
 * late() brings about a misuse by a thread of the program's own while the runtime comes to its end,
 * when what would block is a mistake, and on_fatal is still called.
 */
#ifndef TESTS_DIE_LAST_WORD_H
#define TESTS_DIE_LAST_WORD_H

#include <errno.h>
#include <pirn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static inline void say_last(bool right)
{
    const char *word = right ? "last word\n" : "wrong last word\n";
    if (write(2, word, strlen(word)) < 0) {
        _exit(5);
    }
}

static inline int with_last_word(void (*last_word)(const char *), int (*start)(void *))
{
    return pirn_run_config(&(pirn_config){.on_fatal = last_word}, start, NULL);
}

static pirn_sem away;

/* The stop waits for it. */
static inline void stay_away(void)
{
    pirn_sem_release(&away, 1);
    for (;;) {
        pause();
    }
}

static inline void nothing(void *arg)
{
    (void)arg;
}

static inline void *stop(void *arg)
{
    pirn_stop();
    return arg;
}

static inline int late(void (*last_word)(const char *), void (*mistake)(void))
{
    pthread_t t;
    pirn_config config = {.procs = 2, .on_fatal = last_word, .stop_grace = 20 * PIRN_SEC};
    if (pirn_start(&config)) {
        return 1;
    }
    pirn_go(stay_away);
    pirn_sem_acquire(&away, 1);
    if (pthread_create(&t, NULL, stop, NULL)) {
        return 1;
    }
    while (pirn_spawn(NULL, nothing, NULL) != -EAGAIN) {
        usleep(1000);
    }
    mistake();
    return 0;
}

#endif
