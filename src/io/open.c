/* SPDX-License-Identifier: MIT */
/*
 * Opening files, and descriptors that belong to a call.
 *
 * Without a context an open is the plain call, announced as one that may block: mostly it does not. With
 * one it must be possible to give it up, though it waits for the other end of a FIFO or for a server: a
 * record on the heap, with the path, goes to a helper (with PIRN_IO_URING, to the ring), and the goroutine
 * waits for it. Who gives up leaves the record to whoever brings the result, who closes the descriptor; one that
 * has not begun is not made, so that no file is made or emptied by a call that has returned an error.
 * (Measured, with the close: 2.1 us plain, 8 by a helper, 19 by the ring, which has worker threads for it.)
 *
 * A goroutine may be dropped, with the runtime, anywhere between the call that made a descriptor and
 * its return to the program. So every such descriptor is known in a list: struct held in the frames of
 * calls, struct open_job. The stop closes what is there. A thread that was left behind in its open finds
 * HELD_DROPPED, and closes it then.
 *
 * Lock: files.lock (RANK_FILES), for both lists and for job.abandoned. Word locks and the
 * pool's are taken under it.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

#include "ctx/ctx.h"
#include "io/fd.h"
#include "io/files.h"
#include "io/held.h"
#include "io/pool.h"
#include "io/uring.h"
#include "os/iosys.h"
#include "os/sysio.h"

struct open_job {
    struct uring_op op;
    struct pool_job job;
    struct open_job *next, *prev; /* under the lock */
    bool abandoned;               /* the same */
    bool refused;                 /* no thread for it; set before it is done */
    char path[];
};

static struct {
    struct lock lock;
    struct held *held;
    struct open_job *jobs;
} files = {.lock = LOCK_INIT(RANK_FILES)};

/* --- descriptors of calls ----------------------------------------------------------------------------- */

void held_begin(struct held *h)
{
    at_store(&h->fd, HELD_NONE, RELAXED);
    if (!enter()) {
        return;
    }
    lock(&files.lock);
    h->prev = NULL;
    h->next = files.held;
    if (h->next) {
        h->next->prev = h;
    }
    files.held = h;
    unlock(&files.lock);
    leave();
}

void held_end(struct held *h)
{
    if (!enter()) {
        return;
    }
    lock(&files.lock);
    *(h->prev ? &h->prev->next : &files.held) = h->next;
    if (h->next) {
        h->next->prev = h->prev;
    }
    unlock(&files.lock);
    leave();
}

bool held_set(struct held *h, int fd)
{
    int none = HELD_NONE;
    if (fd >= 0 && !at_cas(&h->fd, &none, fd, RELAXED, RELAXED)) {
        sys_close(fd);
        return false;
    }
    return true;
}

/* --- opens that can be given up -------------------------------------------------------------------------- */

static void unlink_locked(struct open_job *j)
{
    *(j->prev ? &j->prev->next : &files.jobs) = j->next;
    if (j->next) {
        j->next->prev = j->prev;
    }
}

/* By who brings the result. The job may be gone afterwards. */
static struct waiter *open_done(struct open_job *j, int result)
{
    lock(&files.lock);
    bool abandoned = j->abandoned;
    j->op.result = result;
    struct waiter *w = abandoned ? NULL : pending_done(&j->op.pending);
    unlock(&files.lock);
    if (abandoned) {
        if (result >= 0) {
            sys_close(result);
        }
        free(j);
    }
    return w;
}

static struct waiter *done_by_ring(struct uring_op *op)
{
    return open_done(container_of(op, struct open_job, op), op->result);
}

static void make_ready(struct waiter *w)
{
    if (w) {
        struct visit v = visit_again();
        waiter_ready(w);
        visit_end(v);
    }
}

static void run_open(struct pool_job *job)
{
    struct open_job *j = container_of(job, struct open_job, job);
    int fd;
    lock(&files.lock);
    bool abandoned = j->abandoned;
    unlock(&files.lock);
    if (abandoned) { /* when it was on its way from the queue */
        free(j);
        return;
    }
    do {
        fd = sys_openat(j->op.fd, j->path, j->op.flags, j->op.mode);
    } while (fd == -EINTR);
    make_ready(open_done(j, fd));
}

static void refuse_open(struct pool_job *job)
{
    struct open_job *j = container_of(job, struct open_job, job);
    j->refused = true;
    make_ready(open_done(j, -EAGAIN));
}

static void drop_open(struct pool_job *job)
{
    open_done(container_of(job, struct open_job, job), -ECANCELED);
}

static const struct pool_kind open_kind = {POOL_OPENS, run_open, refuse_open, drop_open};

/* In the runtime: the result is the caller's, and the record is gone or somebody else's. */
static int take_result(struct open_job *j, bool done, bool *refused)
{
    int err = done ? 0 : pending_ctx_err();
    if (!done && uring_cancel(&j->op)) {
        done = true;
    }
    lock(&files.lock);
    done |= pending_is_done(&j->op.pending);
    unlink_locked(j);
    bool begun = done || !pool_take_back(&j->job);
    j->abandoned = !done && begun;
    unlock(&files.lock);
    if (!begun) {
        heap_free(j);
    }
    if (!done) {
        return err;
    }
    int result = j->op.result;
    *refused = j->refused || (result == -ECANCELED && !err);
    heap_free(j);
    return result == -ECANCELED && err ? err : result;
}

/* refused: it is to be done on this thread. */
static int open_in_ctx(int dir, const char *path, int flags, mode_t mode, bool *refused)
{
    size_t n = strlen(path) + 1;
    struct open_job *j = calloc(1, sizeof *j + n);
    if (!j) {
        *refused = true;
        return 0;
    }
    memcpy(j->path, path, n);
    j->op = (struct uring_op){.kind = URING_OPEN,
                              .fd = dir,
                              .where = j->path,
                              .flags = flags,
                              .mode = mode,
                              .done = done_by_ring};
    j->job.kind = &open_kind;
    bring(j);
    enter();
    bring(NULL);
    lock(&files.lock);
    j->next = files.jobs;
    if (j->next) {
        j->next->prev = j;
    }
    files.jobs = j;
    unlock(&files.lock);
    if (!io_ring_first() || !uring_put(&j->op)) {
        pool_put(&j->job);
    }
    int result = take_result(j, pending_wait(&j->op.pending, WAIT_OPEN), refused);
    if (result >= 0) {
        pd_renew(result);
    }
    leave();
    return result;
}

/* --- the call --------------------------------------------------------------------------------------------- */

static int open_here(int dir, const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = sys_openat(dir, path, flags, mode);
    } while (fd == -EINTR);
    return fd;
}

static int open_announced(int dir, const char *path, int flags, mode_t mode)
{
    struct held h;
    held_begin(&h);
    pirn_blocking_begin();
    int fd = open_here(dir, path, flags, mode);
    fd = held_set(&h, fd) ? fd : -ECANCELED;
    pirn_blocking_end();
    fd_renew(fd);
    held_end(&h);
    return fd;
}

static int open_file(int dir, const char *path, int flags, mode_t mode)
{
    flags |= O_CLOEXEC;
    struct m *mp = stop_point();
    if (!path) {
        return -EFAULT; /* what the kernel says; libc's declaration lets nobody ask it */
    }
    if (!mp) {
        return open_here(dir, path, flags, mode);
    }
    bool refused = !ctx_of(mp);
    int err = pending_ctx_err();
    int fd = err ? err : refused ? 0 : open_in_ctx(dir, path, flags, mode, &refused);
    return refused ? open_announced(dir, path, flags, mode) : fd;
}

/* Only then there is a mode among the arguments. */
static bool may_make_a_file(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

EXPORT int pirn_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is above */
    mode_t mode = may_make_a_file(flags) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open_file(AT_FDCWD, path, flags, mode);
}

EXPORT int pirn_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is above */
    mode_t mode = may_make_a_file(flags) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open_file(dir, path, flags, mode);
}

/* --- the end ------------------------------------------------------------------------------------------------ */

/* No M runs any more, the ring and the helpers have ended, unless some were left behind. */
void held_stop(void)
{
    lock(&files.lock);
    for (struct held *h = files.held; h; h = h->next) {
        int fd = at_xchg(&h->fd, HELD_DROPPED, RELAXED);
        if (fd >= 0) {
            sys_close(fd);
        }
    }
    files.held = NULL;
    for (struct open_job *j = files.jobs, *next; j; j = next) {
        next = j->next;
        j->abandoned =
            !pending_is_done(&j->op.pending); /* a helper that was left behind frees it */
        if (!j->abandoned) {
            if (j->op.result >= 0) {
                sys_close(j->op.result);
            }
            free(j);
        }
    }
    files.jobs = NULL;
    unlock(&files.lock);
}
