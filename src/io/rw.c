/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing. What is known to be a socket is asked with MSG_DONTWAIT; any other first with
 * RWF_NOWAIT, which pipes, eventfds, timerfds and sockets know, and if the kernel does not know it for a
 * socket, with MSG_DONTWAIT. What knows neither (terminals, inotify, named pipes) is waited for: io.c.
 * A file is read on where its page cache ends, as by read(2): many take a short read for the end.
 *
 * A write to a socket asks for no SIGPIPE; one to anything else but 1 and 2 is kept from raising it
 * (os/sysio.c).
 */
#include <errno.h>
#include <limits.h>

#include "io/io.h"
#include "os/sysio.h"

#define FEW 8 /* parts that are written or read at a time, once some has been */

static bool wants_sigpipe(int fd)
{
    return fd == 1 || fd == 2;
}

/* What the kernel would say. It can't be asked, since the lengths are needed before. */
static int check_parts(const struct iovec *iov, int n)
{
    return n < 0 || n > IOV_MAX ? -EINVAL : n && !iov ? -EFAULT : 0;
}

static size_t length(const struct iovec *iov, int n)
{
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        total += iov[i].iov_len;
    }
    return total;
}

/* What is left, in few parts. */
static int rest_of(struct io *io, struct iovec *out)
{
    size_t skip = io->done;
    const struct iovec *from = io->iov;
    int left = io->niov, n = 0;
    while (left && skip >= from->iov_len) {
        skip -= from->iov_len;
        from++, left--;
    }
    for (; left && n < FEW; from++, left--, n++) {
        out[n].iov_base = (char *)from->iov_base + skip;
        out[n].iov_len = from->iov_len - skip;
        skip = 0;
    }
    return n;
}

/* --- reading ------------------------------------------------------------------------------------------- */

static ssize_t receive(struct io *io)
{
    if (unlikely(!io->total)) {
        return 0; /* as read(2): recv would take a datagram, and drop it */
    }
    if (likely(io->niov == 1)) {
        return sys_recv(io->fd, io->iov->iov_base, io->iov->iov_len, 0);
    }
    struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)io->iov,
                         .msg_iovlen = (size_t)io->niov};
    return sys_recvmsg(io->fd, &msg, 0);
}

static ssize_t try_read(struct io *io)
{
    if (likely(io->look.kind == FD_SOCKET)) {
        return receive(io);
    }
    struct iovec few[FEW];
    int n = io->niov;
    const struct iovec *iov = io->iov;
    if (unlikely(io->done)) {
        n = rest_of(io, few);
        iov = few;
    }
    ssize_t r = sys_readv_nowait(io->fd, iov, n);
    if (unlikely(sys_has_no_flags(r))) {
        r = receive(io);
        return r == -ENOTSOCK ? IO_BLOCKS : r;
    }
    /* The page cache may have less of a file than there is, and read(2) would give all: it goes on. */
    io->all |= r > 0 && (size_t)r < io->total && sys_file_goes_on(io->fd);
    /* The end of a file may be that of the page cache, on 5.9 and 5.10: it is asked once more. */
    return unlikely(r == 0 && io->total && sys_is_file(io->fd)) ? IO_BLOCK_NOW : r;
}

static ssize_t block_read(struct io *io)
{
    struct iovec few[FEW];
    if (unlikely(io->done)) {
        int n = rest_of(io, few);
        return sys_readv(io->fd, few, n);
    }
    return sys_readv(io->fd, io->iov, io->niov);
}

static ssize_t read_parts(int fd, const struct iovec *iov, int n)
{
    not_forked();
    int err = check_parts(iov, n);
    if (err) {
        return err;
    }
    struct io io = IO_INIT(fd, FD_READ, try_read, block_read);
    io.iov = iov;
    io.niov = n;
    io.total = length(iov, n);
    io.hints = true;
    io.dont_wait = io.total == 0; /* nothing is asked for */
    ssize_t r = io_run(&io);
    return r == -EAGAIN && io.total == 0 ? 0 : r;
}

EXPORT ssize_t pirn_read(int fd, void *buf, size_t n)
{
    struct iovec one = {buf, n};
    return read_parts(fd, &one, n > 0);
}

EXPORT ssize_t pirn_readv(int fd, const struct iovec *iov, int n)
{
    return read_parts(fd, iov, n);
}

/* Counted throughout, here and in pirn_write_all: closed between two reads, the number would be another file's. */
EXPORT ssize_t pirn_read_full(int fd, void *buf, size_t n)
{
    not_forked();
    struct fd_use use;
    size_t done = 0;
    ssize_t r = n ? fd_begin(&use, fd, FD_READ) : 0;
    if (r || n == 0) {
        return r;
    }
    do {
        r = pirn_read(fd, (char *)buf + done, n - done);
        done += r > 0 ? (size_t)r : 0;
    } while (r > 0 && done < n);
    fd_end(&use);
    return r < 0 ? r : (ssize_t)done;
}

/* --- writing ------------------------------------------------------------------------------------------- */

static ssize_t write_with(struct io *io, const struct iovec *iov, int n)
{
    ssize_t r = -ENOTSOCK;
    if (io->look.kind != FD_OTHER && likely(n)) { /* no parts: as writev(2), no datagram */
        struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n};
        r = n == 1 ? sys_sendto(io->fd, iov->iov_base, iov->iov_len, 0, NULL, 0)
                   : sys_sendmsg(io->fd, &msg, 0);
    }
    if (unlikely(r == -ENOTSOCK)) {
        r = sys_writev_nowait(io->fd, iov, n, wants_sigpipe(io->fd));
        return unlikely(sys_has_no_flags(r)) ? IO_BLOCKS : r;
    }
    return r;
}

static ssize_t try_write(struct io *io)
{
    if (unlikely(io->at_once)) {
        return IO_BLOCKS; /* it was asked before */
    }
    if (likely(!io->done)) {
        return write_with(io, io->iov, io->niov);
    }
    struct iovec few[FEW];
    int n = rest_of(io, few);
    return write_with(io, few, n);
}

/* No more than fits if there is room at all: it would block, and nothing would end it. */
static int clip(struct iovec *few, int n, size_t most)
{
    int i = 0;
    for (; i < n && most; i++) {
        few[i].iov_len = min_u64(few[i].iov_len, most);
        most -= few[i].iov_len;
    }
    return i;
}

static ssize_t block_write(struct io *io)
{
    io->at_once = io->at_once ? io->at_once : sys_writes_at_once(io->fd);
    /* One call: one record, where files are appended to, and for devices. */
    if (likely(!io->done && io->total <= io->at_once)) {
        return sys_writev(io->fd, io->iov, io->niov, wants_sigpipe(io->fd));
    }
    struct iovec few[FEW];
    int n = clip(few, rest_of(io, few), io->at_once);
    return sys_writev(io->fd, few, n, wants_sigpipe(io->fd));
}

static ssize_t write_parts(int fd, const struct iovec *iov, int n)
{
    not_forked();
    int err = check_parts(iov, n);
    if (err) {
        return err;
    }
    struct io io = IO_INIT(fd, FD_WRITE, try_write, block_write);
    io.iov = iov;
    io.niov = n;
    io.total = length(iov, n);
    io.all = true;
    return io_run(&io);
}

EXPORT ssize_t pirn_write(int fd, const void *buf, size_t n)
{
    struct iovec one = {(void *)(uintptr_t)buf, n};
    return write_parts(fd, &one, 1);
}

EXPORT ssize_t pirn_writev(int fd, const struct iovec *iov, int n)
{
    return write_parts(fd, iov, n);
}

EXPORT ssize_t pirn_write_all(int fd, const void *buf, size_t n)
{
    not_forked();
    struct fd_use use;
    size_t done = 0;
    ssize_t r = fd_begin(&use, fd, FD_WRITE);
    if (r) {
        return r;
    }
    do {
        r = pirn_write(fd, (const char *)buf + done, n - done);
        done += r > 0 ? (size_t)r : 0;
    } while (r >= 0 && done < n);
    fd_end(&use);
    return r < 0 ? r : (ssize_t)n;
}

/* --- sockets --------------------------------------------------------------------------------------------- */

static ssize_t try_recvfrom(struct io *io)
{
    return sys_recvfrom(io->fd, io->one.iov_base, io->one.iov_len, io->flags, io->addr, io->len);
}

EXPORT ssize_t pirn_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr,
                             socklen_t *len)
{
    struct io io = IO_INIT(fd, FD_READ, try_recvfrom, NULL);
    io.one = (struct iovec){buf, n};
    io.flags = flags;
    io.addr = addr;
    io.len = len;
    io.total = n;
    io.dont_wait = flags & (MSG_DONTWAIT | MSG_ERRQUEUE);
    io.hints = !flags && !addr;
    return io_run(&io);
}

static ssize_t try_recvmsg(struct io *io)
{
    return sys_recvmsg(io->fd, io->msg, io->flags);
}

EXPORT ssize_t pirn_recvmsg(int fd, struct msghdr *msg, int flags)
{
    struct io io = IO_INIT(fd, FD_READ, try_recvmsg, NULL);
    io.msg = msg;
    io.flags = flags;
    io.dont_wait = flags & (MSG_DONTWAIT | MSG_ERRQUEUE);
    return io_run(&io);
}

static ssize_t try_sendto(struct io *io)
{
    return sys_sendto(io->fd, (char *)io->one.iov_base + io->done, io->one.iov_len - io->done,
                      io->flags, io->addr, io->len ? *io->len : 0);
}

EXPORT ssize_t pirn_sendto(int fd, const void *buf, size_t n, int flags,
                           const struct sockaddr *addr, socklen_t len)
{
    struct io io = IO_INIT(fd, FD_WRITE, try_sendto, NULL);
    io.one = (struct iovec){(void *)(uintptr_t)buf, n};
    io.flags = flags;
    io.addr = (struct sockaddr *)(uintptr_t)addr;
    io.len = addr ? &len : NULL;
    io.total = n;
    io.all = !(flags & MSG_DONTWAIT);
    io.dont_wait = flags & MSG_DONTWAIT;
    return io_run(&io);
}

static ssize_t try_sendmsg(struct io *io)
{
    return sys_sendmsg(io->fd, io->msg, io->flags);
}

EXPORT ssize_t pirn_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    struct io io = IO_INIT(fd, FD_WRITE, try_sendmsg, NULL);
    io.msg = (struct msghdr *)(uintptr_t)msg;
    io.flags = flags;
    io.dont_wait = flags & MSG_DONTWAIT;
    return io_run(&io);
}
