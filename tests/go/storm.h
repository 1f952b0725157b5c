/* SPDX-License-Identifier: MIT */
/* Signals that rain on all threads: the one that preempts, and another. */
#ifndef TESTS_GO_STORM_H
#define TESTS_GO_STORM_H

#include <dirent.h>
#include <pthread.h>
#include <signal.h>

#include "go/busy.h"

static atomic_int calm;
static atomic_ulong usr1s, urgs;
static pthread_t storm_thread;

static inline void counts(int sig)
{
    atomic_fetch_add(sig == SIGUSR1 ? &usr1s : &urgs, 1);
}

/* Before there is a runtime. */
static inline void storm_handlers(int flags)
{
    struct sigaction sa = {.sa_handler = counts, .sa_flags = flags};
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    CHECK_EQ(sigaction(SIGURG, &sa, NULL), 0);
}

/* One at each thread but this one, which blocks them; the other one the next time. */
static inline void shoot_at_all(void)
{
    static int times;
    times++;
    pid_t self = gettid();
    DIR *d = opendir("/proc/self/task");
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));) {
        int tid = atoi(e->d_name);
        if (tid > 0 && tid != self)
            syscall(SYS_tgkill, getpid(), tid, (tid + times) % 2 ? SIGUSR1 : SIGURG);
    }
    closedir(d);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(kill(getpid(), SIGURG), 0);
}

static inline void *storm(void *arg)
{
    for (; !atomic_load(&calm); plain_sleep(200 * PIRN_US))
        shoot_at_all();
    return arg;
}

static inline void storm_begin(void)
{
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGURG);
    atomic_store(&calm, 0);
    pthread_sigmask(SIG_BLOCK, &both, NULL);
    CHECK_EQ(pthread_create(&storm_thread, NULL, storm, NULL), 0);
    pthread_sigmask(SIG_UNBLOCK, &both, NULL);
}

static inline void storm_end(void)
{
    atomic_store(&calm, 1);
    CHECK_EQ(pthread_join(storm_thread, NULL), 0);
}

#endif
