/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: plain numbers, calls in the shape of POSIX's, results >= 0 or -errno.
 *
 * A call waits like a blocking one, and only its goroutine (or foreign thread) waits. Any descriptor
 * will do, whoever made it and whatever its flags, which are never changed: sockets, pipes, terminals,
 * eventfds, files. Any number may use one descriptor at a time. The calls end early with
 *
 *   -EBADF                 it is closed by pirn_close
 *   -ETIMEDOUT             its deadline has passed
 *   -ECANCELED             pirn_fd_cancel; or the current context (or -ETIMEDOUT: that one's deadline)
 *
 * and what was written until then is the result, if that is not nothing. SIGPIPE is raised for
 * descriptors 1 and 2 only, if they are not sockets.
 *
 * Calls that write at the same time are not put in order: of a stream, one that does not fit into the kernel's
 * buffer at once goes on when there is room, and parts of others may come in between. Take a mutex.
 *
 * Some calls go on until the kernel returns, and the number is closed then: reads and writes of files; on a
 * terminal, FIFO or listener that is blocking, and for pirn_sendfile on any that is, who was told that it is ready
 * when another process, or another call, was faster; pirn_sendfile of datagrams on a socket that is blocking;
 * and pirn_connect on one whose SO_SNDTIMEO the program has set, for that time.
 */
#ifndef PIRN_IO_H
#define PIRN_IO_H

#include <pirn.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of <sys/socket.h> and <sys/uio.h>, which are not included here: they take names such as send and bind.
 * pirn_socklen is socklen_t. */
struct sockaddr;
struct msghdr;
struct iovec;
typedef unsigned pirn_socklen;

PIRN_API_ ssize_t pirn_read(int fd, void *buf, size_t n);
PIRN_API_ ssize_t pirn_write(int fd, const void *buf, size_t n); /* all, unless it ends early */
PIRN_API_ ssize_t pirn_readv(int fd, const struct iovec *iov, int n);
PIRN_API_ ssize_t pirn_writev(int fd, const struct iovec *iov, int n); /* the same */
PIRN_API_ ssize_t pirn_read_full(int fd, void *buf, size_t n);         /* less than n: the end */
PIRN_API_ ssize_t pirn_write_all(int fd, const void *buf, size_t n);   /* n, or the error */

/* With MSG_DONTWAIT in flags they don't wait: -EAGAIN. */
PIRN_API_ ssize_t pirn_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr,
                                pirn_socklen *len);
PIRN_API_ ssize_t pirn_sendto(int fd, const void *buf, size_t n, int flags,
                              const struct sockaddr *addr, pirn_socklen len);
PIRN_API_ ssize_t pirn_recvmsg(int fd, struct msghdr *msg, int flags);
PIRN_API_ ssize_t pirn_sendmsg(int fd, const struct msghdr *msg, int flags); /* may send less */

/*
 * What accept gives is non-blocking and closed at exec. While the kernel has no descriptors or memory for
 * one more connection it waits, and tries again; if pirn itself has no memory for it, the connection is closed, and
 * the result is -ENOMEM. A connect that has ended early goes on in the kernel; if the
 * socket is blocking, another one waits for it. (SO_SNDTIMEO of such a socket is changed while it begins.)
 */
PIRN_API_ int pirn_accept(int fd, struct sockaddr *addr, pirn_socklen *len);
PIRN_API_ int pirn_connect(int fd, const struct sockaddr *addr, pirn_socklen len);
PIRN_API_ int pirn_shutdown(int fd, int how); /* SHUT_WR and so on: half of a connection */

/*
 * Whoever waits for it goes on with -EBADF. The number is free again when the last call that uses it
 * has returned. Is not ended by a context.
 */
PIRN_API_ int pirn_close(int fd);

/*
 * Calls that wait to read or write return -ETIMEDOUT from then on. 0: no deadline; one in the past
 * ends those that wait now. -EINVAL for what can't be waited for, such as a file.
 */
PIRN_API_ int pirn_fd_deadline(int fd, pirn_ns read, pirn_ns write);

/* Calls on it, now and later, return -ECANCELED until it is closed. */
PIRN_API_ int pirn_fd_cancel(int fd);

enum { PIRN_IN = 1, PIRN_OUT = 2 };
/* Waits until it can be read or written (an error, or the end, counts as both): what it is ready for. */
PIRN_API_ int pirn_fd_wait(int fd, int events, pirn_ns deadline);

/*
 * Pirn keeps it registered with its poller, as it does with those that it made: cheaper, but it must be
 * closed by pirn_close, and its number not be given to another file by dup2. To be called, once more for what
 * pirn made, after TCP_ULP was set (TLS by the kernel): reads then end before all that has come. Until then a read may
 * wait for what is there already; it goes on by the call. The same after SO_RCVLOWAT was changed between reads.
 */
PIRN_API_ int pirn_fd_adopt(int fd);

/*
 * net: "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6", "unix", "unixgram", "unixpacket". addr: "host:port", ":port"
 * (every address; for dial, this machine), "[::1]:80", port as a number or the name of a service; or a path
 * ("@name": abstract).
 * The result is a descriptor, non-blocking and closed at exec. A listener takes over the address of one
 * that is closed; for "udp" it is a socket that is bound. dial connects, to the first address of the name
 * that answers, trying another every 300 ms. A thread that is not a goroutine looks names up by itself, as
 * getaddrinfo has it: the deadline counts from then on.
 */
PIRN_API_ int pirn_listen(const char *net, const char *addr);
PIRN_API_ int pirn_dial(const char *net, const char *addr);
PIRN_API_ int pirn_dial_until(const char *net, const char *addr, pirn_ns deadline);

#ifdef __cplusplus
}
#endif

#endif
