/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a child. A pidfd is readable when its process has ended; so it is waited for like any
 * other descriptor, and then asked for without waiting. Where there are no pidfds, or none is to be had,
 * the thread waits, without a P; or in a context, which must be able to end the wait, it is asked for now and
 * then.
 *
 * While nobody has waited for the child its number is its own, so pidfd_open can't mean another. If
 * somebody else waits for it in between, the next look says so: -ECHILD.
 */
#include <sys/wait.h>

#include "ctx/ctx.h"
#include "io/fd.h"
#include "io/held.h"
#include "os/iosys.h"
#include "os/sysio.h"

#define PAUSE_FIRST (500 * PIRN_US)
#define PAUSE_MOST (20 * PIRN_MS)

struct wait_call {
    pid_t pid;
    int status;
    pid_t result;
};

/* 0: with WNOHANG, it has not ended. */
static pid_t wait_here(struct wait_call *c, int options)
{
    pid_t r;
    do {
        r = sys_waitpid(c->pid, &c->status, options);
    } while (r == -EINTR);
    return r;
}

static void *wait_handed_off(void *arg)
{
    struct wait_call *c = arg;
    c->result = wait_here(c, 0);
    return NULL;
}

static pid_t wait_on_thread(struct wait_call *c)
{
    pirn_blocking(wait_handed_off, c);
    return c->result;
}

/* What is complete wins over a context that has ended; so below. */
static pid_t wait_now_and_then(struct wait_call *c)
{
    for (int64_t pause = PAUSE_FIRST;; pause = pause < PAUSE_MOST ? 2 * pause : pause) {
        int err = pirn_sleep(pause);
        pid_t r = wait_here(c, WNOHANG);
        if (r || err) {
            return r ? r : err;
        }
    }
}

static pid_t wait_without_fd(struct wait_call *c)
{
    return ctx_of(getm()) ? wait_now_and_then(c) : wait_on_thread(c);
}

static pid_t wait_for_fd(struct wait_call *c, int fd)
{
    for (bool again = false;; again = true) {
        int err = pirn_fd_wait(fd, PIRN_IN, PIRN_NEVER);
        /* Dead, but its tracer has not been told yet: nothing says when it is ours. */
        err = again && err > 0 ? pirn_sleep(PAUSE_MOST) : err;
        pid_t r = wait_here(c, WNOHANG);
        if (r || err == -ECANCELED || err == -ETIMEDOUT) {
            return r ? r : err;
        }
        if (err < 0) {
            return wait_without_fd(c);
        }
    }
}

static pid_t wait_goroutine(struct wait_call *c)
{
    struct held h;
    pid_t r = wait_here(c, WNOHANG);
    if (r || c->pid <= 0) {
        return r ? r : wait_without_fd(c);
    }
    held_begin(&h);
    int fd = sys_pidfd_open(c->pid);
    held_set(&h, fd);
    fd_renew(fd);
    if (fd < 0) {
        r = wait_without_fd(c);
    } else {
        r = wait_for_fd(c, fd);
        at_store(&h.fd, HELD_NONE, RELAXED);
        sys_close(fd);
    }
    held_end(&h);
    return r;
}

EXPORT pid_t pirn_wait_pid(pid_t pid, int *status)
{
    struct wait_call c = {.pid = pid};
    pid_t r = stop_point() ? wait_goroutine(&c) : wait_here(&c, 0);
    if (status && r > 0) {
        *status = c.status;
    }
    return r;
}
