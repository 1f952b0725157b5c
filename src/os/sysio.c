/* SPDX-License-Identifier: MIT */
/* The system calls of the I/O layer; sysio.h has the contract. */
#include "os/sysio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/tool.h"
#include "base/util.h"
#include "os/fault.h"
#include "os/os.h"
#include "os/sigpipe.h"

#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100 /* Linux 6.18 */
#endif

static at_u32 no_rwf_nosignal; /* this kernel does not know it */

/* Again while it is interrupted; the result, or -errno. */
#define SYS(call, expression)                                                                      \
    ({                                                                                             \
        int saved_ = errno;                                                                        \
        long r_;                                                                                   \
        do {                                                                                       \
            r_ = SYS_TRY(call, expression);                                                        \
        } while (unlikely(r_ < 0 && errno == EINTR));                                              \
        r_ = r_ < 0 ? -errno : r_;                                                                 \
        errno = saved_;                                                                            \
        r_;                                                                                        \
    })

/* The same, once. */
#define SYS_ONCE(call, expression)                                                                 \
    ({                                                                                             \
        int saved_ = errno;                                                                        \
        long r_ = SYS_TRY(call, expression);                                                       \
        r_ = r_ < 0 ? -errno : r_;                                                                 \
        errno = saved_;                                                                            \
        r_;                                                                                        \
    })

/* These two set errno. */
static int stat_of(int fd, struct stat *st)
{
    *st = (struct stat){.st_mode = 0}; /* MemorySanitizer of clang 14 does not know fstat */
    return (int)SYS_TRY(SYS_CALL_STAT, fstat(fd, st));
}

static int option_of(int fd, int level, int option, void *value, socklen_t *len)
{
    return (int)SYS_TRY(SYS_CALL_OPTION, getsockopt(fd, level, option, value, len));
}

/* --- reading --------------------------------------------------------------------------------------- */

ssize_t sys_recv(int fd, void *buf, size_t n, int flags)
{
    return SYS(SYS_CALL_READ, recv(fd, buf, n, flags | MSG_DONTWAIT));
}

ssize_t sys_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr, socklen_t *len)
{
    return SYS(SYS_CALL_READ, recvfrom(fd, buf, n, flags | MSG_DONTWAIT, addr, len));
}

ssize_t sys_recvmsg(int fd, struct msghdr *msg, int flags)
{
    return SYS(SYS_CALL_READ, recvmsg(fd, msg, flags | MSG_DONTWAIT));
}

static void kernel_wrote(const struct iovec *iov, ssize_t n)
{
    for (; TOOL_MSAN && n > 0; iov++) {
        size_t here = min_u64((size_t)n, iov->iov_len);
        tool_kernel_wrote(iov->iov_base, here);
        n -= (ssize_t)here;
    }
}

ssize_t sys_readv_nowait(int fd, const struct iovec *iov, int n)
{
    ssize_t r = SYS(SYS_CALL_READ, preadv2(fd, iov, n, -1, RWF_NOWAIT));
    kernel_wrote(iov, r);
    return r;
}

ssize_t sys_readv(int fd, const struct iovec *iov, int n)
{
    return SYS(SYS_CALL_READ, readv(fd, iov, n));
}

/* --- writing --------------------------------------------------------------------------------------- */

ssize_t sys_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr,
                   socklen_t len)
{
    return SYS(SYS_CALL_WRITE, sendto(fd, buf, n, flags | MSG_DONTWAIT | MSG_NOSIGNAL, addr, len));
}

ssize_t sys_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    return SYS(SYS_CALL_WRITE, sendmsg(fd, msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

static ssize_t write_now(int fd, const struct iovec *iov, int n, int how)
{
    return how < 0 ? SYS(SYS_CALL_WRITE, writev(fd, iov, n))
                   : SYS(SYS_CALL_WRITE, pwritev2(fd, iov, n, -1, how));
}

static ssize_t write_without_sigpipe(int fd, const struct iovec *iov, int n, int how)
{
    struct sigpipe sigpipe;
    size_t all = 0;
    for (int i = 0; i < n; i++) {
        all += iov[i].iov_len;
    }
    sigpipe_keep_out(&sigpipe);
    ssize_t r = write_now(fd, iov, n, how);
    sigpipe_let_in(&sigpipe, r >= 0 && (size_t)r == all);
    return r;
}

/* how: flags of pwritev2; -1: a plain write. */
static ssize_t write_how(int fd, const struct iovec *iov, int n, int how, bool sigpipe)
{
    if (sigpipe) {
        return write_now(fd, iov, n, how);
    }
    if (!at_load(&no_rwf_nosignal, RELAXED)) {
        ssize_t r = write_now(fd, iov, n, (how < 0 ? 0 : how) | RWF_NOSIGNAL);
        if (!sys_has_no_flags(r) && r != -EINVAL) {
            return r;
        }
        r = write_without_sigpipe(fd, iov, n, how);
        if (r >= 0 || r == -EPIPE || r == -EAGAIN) {
            at_store(&no_rwf_nosignal, 1, RELAXED); /* it was the flag */
        }
        return r;
    }
    return write_without_sigpipe(fd, iov, n, how);
}

ssize_t sys_writev_nowait(int fd, const struct iovec *iov, int n, bool sigpipe)
{
    return write_how(fd, iov, n, RWF_NOWAIT, sigpipe);
}

ssize_t sys_writev(int fd, const struct iovec *iov, int n, bool sigpipe)
{
    return write_how(fd, iov, n, -1, sigpipe);
}

/* A stream is ready if a third of its buffer is free, of a Unix one three quarters. What is neither sends
 * messages, which stay whole. */
static size_t sends_at_once(int fd)
{
    int size = sys_sockopt(fd, SOL_SOCKET, SO_SNDBUF);
    return sys_sockopt(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM && size >= 8 ? (size_t)size / 8
                                                                            : SIZE_MAX;
}

/* A pipe that is ready has room for PIPE_BUF bytes. A terminal has for some hundreds, and may write two for
 * one. A file is written all at once. */
size_t sys_writes_at_once(int fd)
{
    struct stat st;
    struct termios t;
    int saved = errno;
    size_t most = SIZE_MAX;
    if (stat_of(fd, &st) == 0) {
        most = S_ISFIFO(st.st_mode)                            ? PIPE_BUF
               : S_ISSOCK(st.st_mode)                          ? sends_at_once(fd)
               : S_ISCHR(st.st_mode) && tcgetattr(fd, &t) == 0 ? 128
                                                               : most;
    }
    errno = saved;
    return most;
}

/* --- sockets --------------------------------------------------------------------------------------- */

int sys_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
    return (int)SYS(SYS_CALL_ACCEPT, accept4(fd, addr, len, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int sys_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return (int)SYS_ONCE(SYS_CALL_CONNECT, connect(fd, addr, len));
}

/* Not below the clock's tick, a few milliseconds. Who reads the option meanwhile finds ours, and lets it be. */
int sys_connect_shortly(int fd, const struct sockaddr *addr, socklen_t len)
{
    struct timeval own = {0}, none = {0}, brief = {.tv_usec = 1};
    socklen_t n = sizeof own;
    int saved = errno;
    bool ours = option_of(fd, SOL_SOCKET, SO_SNDTIMEO, &own, &n) == 0 && !own.tv_sec && !own.tv_usec
                && SYS_TRY(SYS_CALL_SET_OPTION,
                           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief))
                       == 0;
    int r = sys_connect(fd, addr, len);
    if (ours) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
    }
    errno = saved;
    return r;
}

int sys_close(int fd)
{
    int saved = errno;
    int r = SYS_TRY(SYS_CALL_CLOSE, close(fd)) ? -errno : 0;
    errno = saved;
    return r == -EINTR ? 0 : r; /* it is closed all the same */
}

static bool close_may_wait(int fd)
{
    struct linger l = {0};
    socklen_t len = sizeof l;
    struct stat st;
    if (option_of(fd, SOL_SOCKET, SO_LINGER, &l, &len) == 0) {
        return l.l_onoff && l.l_linger > 0;
    }
    return errno == ENOTSOCK && stat_of(fd, &st) == 0 && !S_ISFIFO(st.st_mode)
           && st.st_mode & S_IFMT; /* eventfds and their like are of no type */
}

int sys_close_number(int fd, int *err)
{
    int saved = errno;
    int second =
        close_may_wait(fd) ? (int)SYS_TRY(SYS_CALL_DUP, fcntl(fd, F_DUPFD_CLOEXEC, 0)) : -1;
    errno = saved;
    *err = sys_close(fd);
    return second;
}

int sys_socket(int domain, int type, int protocol)
{
    return (int)SYS(SYS_CALL_SOCKET, socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
}

int sys_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    return (int)SYS(SYS_CALL_BIND, bind(fd, addr, len));
}

int sys_listen(int fd, int backlog)
{
    return (int)SYS(SYS_CALL_LISTEN, listen(fd, backlog));
}

int sys_sockopt(int fd, int level, int option)
{
    int value = 0;
    socklen_t len = sizeof value;
    int r = (int)SYS_ONCE(SYS_CALL_OPTION, getsockopt(fd, level, option, &value, &len));
    return r < 0 ? r : value;
}

int sys_set_sockopt(int fd, int level, int option, int value)
{
    return (int)SYS_ONCE(SYS_CALL_SET_OPTION, setsockopt(fd, level, option, &value, sizeof value));
}

int sys_peername(int fd)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    return (int)SYS_ONCE(SYS_CALL_NAME, getpeername(fd, (struct sockaddr *)&addr, &len));
}

bool sys_met_itself(int fd)
{
    struct sockaddr_storage a = {0}, b = {0};
    socklen_t n = sizeof a, m = sizeof b;
    int saved = errno;
    bool same = SYS_TRY(SYS_CALL_NAME, getsockname(fd, (struct sockaddr *)&a, &n)) == 0
                && SYS_TRY(SYS_CALL_NAME, getpeername(fd, (struct sockaddr *)&b, &m)) == 0 && n == m
                && memcmp(&a, &b, n) == 0;
    errno = saved;
    return same;
}

bool sys_has_ulp(int fd)
{
    char name[16] = "";
    socklen_t len = sizeof name;
    int saved = errno, r = option_of(fd, IPPROTO_TCP, TCP_ULP, name, &len);
    errno = saved;
    return r == 0 && len && name[0];
}

int sys_shutdown(int fd, int how)
{
    return (int)SYS_ONCE(SYS_CALL_SHUTDOWN, shutdown(fd, how));
}

bool sys_is_file(int fd)
{
    struct stat st;
    int saved = errno, r = stat_of(fd, &st);
    errno = saved;
    return r == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode));
}

/* The position first: of a pipe or socket there is none, and that is all it costs there. */
bool sys_file_goes_on(int fd)
{
    struct stat st;
    int saved = errno;
    off_t at = SYS_TRY(SYS_CALL_SEEK, lseek(fd, 0, SEEK_CUR));
    bool goes_on = at >= 0 && stat_of(fd, &st) == 0 && S_ISREG(st.st_mode) && at < st.st_size;
    errno = saved;
    return goes_on;
}

bool sys_is_socket_file(const char *path)
{
    struct stat st = {.st_mode = 0};
    int saved = errno, r = (int)SYS_TRY(SYS_CALL_STAT, lstat(path, &st));
    errno = saved;
    return r == 0 && S_ISSOCK(st.st_mode);
}

int sys_unlink(const char *path)
{
    return (int)SYS_ONCE(SYS_CALL_UNLINK, unlink(path));
}

int sys_flags(int fd)
{
    return (int)SYS_ONCE(SYS_CALL_FLAGS, fcntl(fd, F_GETFL));
}

/* --- readiness ------------------------------------------------------------------------------------- */

static int poll_until(struct pollfd *p, nfds_t n, int64_t deadline)
{
    if (deadline == INT64_MAX) {
        return poll(p, n, -1);
    }
    int64_t left = deadline - now_ns();
    left = deadline == 0 || left < 0 ? 0 : left;
    struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    return ppoll(p, n, &t, NULL);
}

int sys_poll_several(struct pollfd *p, int n, int64_t deadline)
{
    return (int)SYS(SYS_CALL_POLL, poll_until(p, (nfds_t)n, deadline));
}

int sys_poll(int fd, short events, int64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    int r = sys_poll_several(&p, 1, deadline);
    return r > 0 ? p.revents : r;
}
