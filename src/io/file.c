/* SPDX-License-Identifier: MIT */
/*
 * Reading, writing and syncing files.
 *
 * A read is first tried with RWF_NOWAIT, which takes what is in the page cache and does not wait for a
 * disk: that is outside the runtime, as if the program had called it. What is not there is read on this
 * thread, without a P, or by the ring (uring.c). The ring costs two wake-ups of threads for an
 * operation, and then hardly anything for more of them at a time; a thread without a P costs none if
 * nobody else wants to run, but there is one for each. Measured (4 KB, cold, 2 CPUs, us a read, at 1 / 4 /
 * 32 reads at a time): threads 47 / 22 / 24, ring 61 / 26 / 12. So the first HAND_OFF_FIRST are on
 * threads, and what comes in addition is the ring's. PIRN_IO_URING gives it everything, PIRN_IO_EPOLL
 * nothing.
 *
 * A write goes to the page cache and mostly does not wait: it is made on this thread as one that may block,
 * 0.9 us for 4 KB. (By the ring 18 us, since ext4 can't write without waiting and leaves it to the ring's
 * worker threads.) A sync does wait, 100 us either way, and is treated as a read that is not in the cache.
 *
 * A read ends short only where pread(2) would: at the end of the file. RWF_NOWAIT ends where the cache
 * does, so it is gone on from there until nothing more comes.
 *
 * Each counts as a call that uses the descriptor (fd_begin): it may make more than one system call, or the
 * ring's thread makes it, and the number must not have become another file's by then.
 *
 * A file is sent like a write: io.c waits for room, and on a descriptor that is blocking one call at a time sends
 * no more than there is room for.
 *
 * Contexts: an operation of the ring is cancelled, and waited for, since the kernel may still write to the
 * buffer. One on a thread goes on to its end. Neither begins when the context has ended already, but what
 * was in the page cache is returned all the same.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "ctx/ctx.h"
#include "io/fd.h"
#include "io/files.h"
#include "io/held.h"
#include "io/io.h"
#include "io/pool.h"
#include "io/uring.h"
#include "os/iosys.h"
#include "os/sysio.h"

#define HAND_OFF_FIRST 2u
#define MOST ((size_t)0x7ffff000) /* what the kernel takes at a time */

bool io_ring_first(void)
{
    return sched.config.io == PIRN_IO_URING;
}

/* Whether there is one to be used. It is asked for, if it is not there yet. */
static bool ring_wanted(void)
{
    if (sched.config.io == PIRN_IO_EPOLL) {
        return false;
    }
    uring_want();
    return uring_up();
}

static at_u32 nhanded_off; /* threads that are blocked by a file at the moment */

/* --- slow: by the ring, or without a P --------------------------------------------------------------- */

static ssize_t plain(const struct uring_op *op)
{
    ssize_t r;
    do {
        switch (op->kind) {
        case URING_READ: r = sys_pread(op->fd, op->where, op->n, op->offset); break;
        case URING_WRITE: r = sys_pwrite(op->fd, op->where, op->n, op->offset); break;
        default: r = sys_fsync(op->fd, op->kind == URING_FDATASYNC); break;
        }
    } while (r == -EINTR);
    return r;
}

static void *plain_handed_off(void *arg)
{
    struct uring_op *op = arg;
    op->offset = (off_t)plain(op);
    at_add(&nhanded_off, (uint32_t)-1, RELAXED); /* here: it may not come back from pirn_blocking */
    return NULL;
}

/* The P is given away at once. */
static ssize_t hand_off(struct uring_op op)
{
    at_add(&nhanded_off, 1, RELAXED);
    pirn_blocking(plain_handed_off, &op);
    return op.offset;
}

/* The P stays, until sysmon finds that it blocks. */
static ssize_t announced(const struct uring_op *op)
{
    pirn_blocking_begin();
    ssize_t r = plain(op);
    pirn_blocking_end();
    return r;
}

/* -EOPNOTSUPP: not by the ring. The kernel has let go of the buffer in any case. */
static ssize_t by_ring(struct uring_op *op)
{
    int err = 0;
    enter();
    if (!ring_wanted() || !uring_put(op)) {
        leave();
        return -EOPNOTSUPP;
    }
    if (!pending_wait(&op->pending, WAIT_FILE)) {
        err = pending_ctx_err();
        if (!uring_cancel(op)) {
            pending_wait_done(&op->pending);
        }
    }
    leave();
    if (op->result == -ECANCELED) {
        return err ? err : -EOPNOTSUPP; /* by the kernel's own will: then otherwise */
    }
    if (op->kind == URING_READ && op->result > 0) {
        tool_kernel_wrote(op->where, (size_t)op->result);
    }
    /* -EAGAIN: it takes O_NONBLOCK at its word, on a file. */
    return op->result == -EAGAIN ? -EOPNOTSUPP : op->result;
}

static ssize_t slow(struct uring_op *op, bool ring)
{
    int err = pending_ctx_err();
    ring = ring && (io_ring_first() || at_load(&nhanded_off, RELAXED) >= HAND_OFF_FIRST);
    ssize_t r = err ? err : ring ? by_ring(op) : -EOPNOTSUPP;
    return r == -EOPNOTSUPP ? hand_off(*op) : r;
}

/* --- reading ------------------------------------------------------------------------------------------- */

/* There is nothing more; said by a kernel that may be wrong (5.9 and 5.10), and so asked again. */
static ssize_t at_end(struct uring_op *op)
{
    return announced(op);
}

static ssize_t read_on(struct uring_op *op, ssize_t *done)
{
    for (;;) {
        ssize_t r = sys_pread_nowait(op->fd, op->where, op->n, op->offset);
        bool last = true;
        if (r == 0) {
            r = at_end(op);
        } else if (r == -EAGAIN) {
            r = slow(op, true);
            last = r <= 0;
        } else if (sys_has_no_flags(r) || r == -EINVAL) {
            r = slow(op, false); /* which says what is wrong, if it is not the flag */
        } else {
            last = r < 0 && r != -EINTR;
        }
        if (r > 0) {
            *done += r;
            op->where = (char *)op->where + r;
            op->n -= (size_t)r;
            op->offset += r;
        }
        if (last || !op->n) {
            return r;
        }
        memset(&op->pending, 0, sizeof op->pending);
        op->cancel = URING_WANTED;
    }
}

EXPORT ssize_t pirn_pread(int fd, void *buf, size_t n, off_t offset)
{
    struct uring_op op = {
        .kind = URING_READ, .fd = fd, .where = buf, .n = min_u64(n, MOST), .offset = offset};
    if (!stop_point()) {
        return plain(&op);
    }
    if (offset < 0) {
        return -EINVAL; /* preadv2 takes -1 for the file's own position */
    }
    struct fd_use use;
    ssize_t done = 0, r = fd_begin(&use, fd, FD_READ);
    r = r ? r : read_on(&op, &done);
    fd_end(&use);
    return done ? done : r;
}

/* --- writing, syncing ------------------------------------------------------------------------------------ */

EXPORT ssize_t pirn_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    struct uring_op op = {.kind = URING_WRITE,
                          .fd = fd,
                          .where = (void *)(uintptr_t)buf,
                          .n = min_u64(n, MOST),
                          .offset = offset};
    if (!stop_point()) {
        return plain(&op);
    }
    int err = offset < 0 ? -EINVAL : pending_ctx_err();
    struct fd_use use;
    ssize_t r = err ? err : fd_begin(&use, fd, FD_WRITE);
    if (r) {
        return r;
    }
    bool ring = io_ring_first();
    r = ring ? sys_seekable(fd) : 0; /* the ring would write to a pipe all the same */
    r = r ? r : ring ? slow(&op, true) : announced(&op);
    fd_end(&use);
    return r;
}

static int sync_file(int fd, enum uring_kind kind)
{
    struct uring_op op = {.kind = kind, .fd = fd};
    struct fd_use use;
    if (!stop_point()) {
        return (int)plain(&op);
    }
    ssize_t r = fd_begin(&use, fd, FD_WRITE);
    r = r ? r : slow(&op, true);
    fd_end(&use);
    return (int)r;
}

EXPORT int pirn_fsync(int fd)
{
    return sync_file(fd, URING_FSYNC);
}

EXPORT int pirn_fdatasync(int fd)
{
    return sync_file(fd, URING_FDATASYNC);
}

/* --- file to socket ---------------------------------------------------------------------------------------- */

/* It may wait for the file, so it is always made in a blocking section; for room only by who waits for that. */
static ssize_t try_sendfile(struct io *io)
{
    int flags = sys_flags(io->fd);
    if (!io->total || flags < 0) {
        ssize_t r = sys_sendfile(io->fd, io->in, io->offset, 0);
        return r < 0 || !io->total ? r : flags; /* 0 would be the end of the file */
    }
    bool blocks = !(flags & O_NONBLOCK);
    io->at_once = !blocks ? SIZE_MAX : io->at_once ? io->at_once : sys_writes_at_once(io->fd);
    return blocks ? IO_BLOCKS : IO_BLOCK_NOW;
}

static ssize_t block_sendfile(struct io *io)
{
    ssize_t r;
    do {
        size_t n = min_u64(io->total - io->done, min_u64(io->at_once, MOST));
        r = sys_sendfile(io->fd, io->in, io->offset, n);
    } while (r == -EINTR);
    return r;
}

EXPORT ssize_t pirn_sendfile(int out, int in, off_t *offset, size_t n)
{
    struct io io = IO_INIT(out, FD_WRITE, try_sendfile, block_sendfile);
    struct fd_use from;
    io.in = in;
    io.offset = offset;
    io.total = min_u64(n, SSIZE_MAX);
    io.all = true;
    ssize_t r = fd_begin(&from, in, FD_READ);
    r = r ? r : io_run(&io);
    fd_end(&from);
    return r;
}

/* --- life ---------------------------------------------------------------------------------------------------- */

void io_start(void)
{
    if (io_ring_first()) {
        uring_start();
    }
    netpoll_by_ring = io_ring_first() && uring_up();
    if (!PIRN_HAVE_LIBURING && sched.io_says) {
        say("pirn: io_uring is not used (not in this build): files use threads, descriptors "
            "epoll\n");
    }
}

void io_make_threads(void)
{
    uring_start_if_asked();
    pool_make();
}

int io_threads_idle(void)
{
    return pool_idle();
}

/* left: threads of goroutines are left behind. */
bool io_stop(int64_t grace, bool left)
{
    left |= pool_stop(grace);
    left |= uring_stop(grace);
    ring_polls_stop(left);
    resolve_stop(left);
    held_stop();
    return left;
}
