/* SPDX-License-Identifier: MIT */
/*
 * The system calls of the I/O layer. Results are >= 0 or -errno; errno is left alone, and a call that a
 * signal has interrupted is made again, where that is right: all but connect and close, of which the first
 * goes on by itself, and the second is over. Tests make them fail: fault.h.
 */
#ifndef PIRN_OS_SYSIO_H
#define PIRN_OS_SYSIO_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* These don't wait: -EAGAIN. */
ssize_t sys_recv(int fd, void *buf, size_t n, int flags);
ssize_t sys_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr, socklen_t *len);
ssize_t sys_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t sys_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr,
                   socklen_t len);
ssize_t sys_sendmsg(int fd, const struct msghdr *msg, int flags);
/* sys_has_no_flags(r): this can't be asked so; a plain call must be. */
ssize_t sys_readv_nowait(int fd, const struct iovec *iov, int n);
ssize_t sys_writev_nowait(int fd, const struct iovec *iov, int n, bool sigpipe);

/* Of preadv2 and pwritev2: this kind of file, this kernel, or a filter of system calls has no such flag or call.
 * -EPERM may be the file's own answer too: then the plain call says it again. */
static inline bool sys_has_no_flags(ssize_t r)
{
    return r == -EOPNOTSUPP || r == -ENOSYS || r == -EPERM;
}

/* These may, if the descriptor is a blocking one. */
ssize_t sys_readv(int fd, const struct iovec *iov, int n);
ssize_t sys_writev(int fd, const struct iovec *iov, int n, bool sigpipe);
size_t sys_writes_at_once(int fd); /* bytes that don't wait if it is ready; SIZE_MAX: not known */
int sys_accept(int fd, struct sockaddr *addr, socklen_t *len);
int sys_connect(int fd, const struct sockaddr *addr, socklen_t len);
/* The same on a blocking socket, for a moment: -EINPROGRESS or -EALREADY, it goes on by itself; -EAGAIN: it has not
 * begun. Its SO_SNDTIMEO is changed for that moment, unless it has one. */
int sys_connect_shortly(int fd, const struct sockaddr *addr, socklen_t len);

int sys_close(int fd);
/* Frees the number without waiting. What would wait for something (unsent data, a device) is left to the
 * second descriptor, which the caller closes where it may; -1: there is none. *err: 0 or -errno. */
int sys_close_number(int fd, int *err);
int sys_socket(int domain, int type, int protocol); /* non-blocking, closed at exec */
int sys_bind(int fd, const struct sockaddr *addr, socklen_t len);
int sys_listen(int fd, int backlog);
int sys_sockopt(int fd, int level, int option); /* an int: its value */
int sys_set_sockopt(int fd, int level, int option, int value);
bool sys_has_ulp(int fd); /* a TCP socket that hands out records, such as those of TLS */
int sys_shutdown(int fd, int how);
int sys_peername(int fd);                  /* 0 if it is connected */
bool sys_met_itself(int fd);               /* it is connected to its own address */
bool sys_is_file(int fd);                  /* it is always ready: a directory and a disk, too */
bool sys_file_goes_on(int fd);             /* one with more after where it stands */
bool sys_is_socket_file(const char *path); /* not one that a link leads to */
int sys_unlink(const char *path);
int sys_flags(int fd); /* O_NONBLOCK and so on */
int sys_poll(int fd, short events,
             int64_t deadline); /* what is ready, POLLIN and so on; 0: nothing in time */
struct pollfd;
int sys_poll_several(struct pollfd *p, int n, int64_t deadline); /* how many are ready */

#endif
