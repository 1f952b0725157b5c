/* SPDX-License-Identifier: MIT */
/*
 * No SIGPIPE from a call that has no flag for that. The signal of a peer that is gone comes to the thread that
 * writes: it is blocked there meanwhile, and taken away, unless it was pending before. It may be there without
 * an error: a call that had done part of its work by then says how much.
 */
#ifndef PIRN_OS_SIGPIPE_H
#define PIRN_OS_SIGPIPE_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

struct sigpipe {
    sigset_t only, before;
    bool was_pending;
};

static inline void sigpipe_keep_out(struct sigpipe *s)
{
    sigset_t pending;
    sigemptyset(&s->only);
    sigaddset(&s->only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &s->only, &s->before);
    sigemptyset(&pending);
    if (sigismember(&s->before, SIGPIPE)) {
        sigpending(&pending);
    }
    s->was_pending = sigismember(&pending, SIGPIPE);
}

/* complete: the call has done all that it was to do. Leaves errno as it is. */
static inline void sigpipe_let_in(const struct sigpipe *s, bool complete)
{
    const struct timespec now = {0};
    int saved = errno;
    if (!complete && !s->was_pending) {
        while (sigtimedwait(&s->only, NULL, &now) < 0 && errno == EINTR) {
        }
    }
    if (!sigismember(&s->before, SIGPIPE)) {
        pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    }
    errno = saved;
}

#endif
