/* SPDX-License-Identifier: MIT */
/*
 * Each system call of the I/O layer, each error: a row. What uses it is done with the first of these calls failing, then
 * the second, and so on until none is left to fail. It goes well, or the error is told; it does not hang, and no
 * descriptor is left behind. A row of which no call was ever made is a mistake of its own.
 */
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../go/files.h"
#include "../go/net.h"
#include "base/tool.h"
#include "fail.h"
#include "io/uring.h"

enum { MOST = 20, NERRORS = 12 };

enum outcome {
    GOES_WELL, /* nobody notices */
    IS_TOLD,   /* the result is the error */
    WELL_OR_TOLD,
};

enum how { ANYHOW, BY_EPOLL, BY_RING };

struct row {
    const char *name;
    int (*use)(void); /* 0 or -errno */
    uint64_t calls;
    enum outcome outcome;
    int errors[NERRORS];
    bool made; /* the call is made all the same */
    enum how how;
};

/* --- the peers: none of their calls is pirn's ------------------------------------------------------------------ */

struct peer {
    int listener; /* non-blocking */
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_un un;
    };
    char text[64];
};

static struct peer tcp, local;

static void peer_begin(struct peer *p, int family)
{
    memset(p, 0, sizeof *p);
    p->any.sa_family = (sa_family_t)family;
    p->len = family == AF_INET ? sizeof p->in : sizeof(sa_family_t);
    if (family == AF_INET)
        p->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->listener = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(p->listener, &p->any, p->len), 0); /* a Unix one gets a name */
    CHECK_EQ(listen(p->listener, 64), 0);
    p->len = sizeof p->un;
    CHECK_EQ(getsockname(p->listener, &p->any, &p->len), 0);
    addr_of(p->listener, p->text, sizeof p->text);
}

static void peer_end(struct peer *p)
{
    CHECK_EQ(close(p->listener), 0);
}

/* Who has come goes. */
static void drain(const struct peer *p)
{
    int fd;
    while ((fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        CHECK_EQ(close(fd), 0);
    CHECK_EQ(errno, EAGAIN);
}

static int first_error(long a, long b)
{
    return a < 0 ? (int)a : b < 0 ? (int)b : 0;
}

/* How that fails has rows of its own. */
static int shut(int fd)
{
    fail_no_more();
    if (fd >= 0)
        CHECK_EQ(pirn_close(fd), 0);
    return fd < 0 ? fd : 0;
}

static void close_both(const int *fds)
{
    shut(fds[0]);
    shut(fds[1]);
}

/* --- connecting ------------------------------------------------------------------------------------------------- */

static int connects(const struct peer *p, int flags)
{
    int fd = socket(p->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    CHECK_GE(fd, 0);
    struct sockaddr_storage other;
    socklen_t len = sizeof other;
    int r = pirn_connect(fd, &p->any, p->len);
    CHECK(r || getpeername(fd, (struct sockaddr *)&other, &len) == 0); /* so it is */
    CHECK_EQ(close(fd), 0);
    drain(p);
    return r;
}

static int connects_tcp(void)
{
    return connects(&tcp, SOCK_NONBLOCK);
}

static int connects_tcp_blocking(void)
{
    return connects(&tcp, 0);
}

static int connects_unix(void)
{
    return connects(&local, SOCK_NONBLOCK);
}

static int connects_unix_blocking(void)
{
    return connects(&local, 0);
}

static int dials(const char *net, const char *addr, const struct peer *p)
{
    int r = shut(pirn_dial(net, addr));
    drain(p);
    return r;
}

static int dials_tcp(void)
{
    return dials("tcp", tcp.text, &tcp);
}

/* Two addresses, where there is IPv6, and nobody listens there: that may be what is told. */
static int dials_any(void)
{
    int r = dials("tcp", strchr(tcp.text, ':'), &tcp);
    return r == -ECONNREFUSED ? 0 : r;
}

static int dials_unix(void)
{
    return dials("unix", local.text, &local);
}

static int dials_udp(void)
{
    return dials("udp", "127.0.0.1:9", &tcp);
}

/* --- listening -------------------------------------------------------------------------------------------------- */

static int listens(const char *net, const char *addr)
{
    return shut(pirn_listen(net, addr));
}

static int listens_tcp(void)
{
    return listens("tcp", "127.0.0.1:0");
}

static int listens_udp(void)
{
    return listens("udp", "127.0.0.1:0");
}

static int listens_unix(void)
{
    char name[64];
    snprintf(name, sizeof name, "@pirn-fault-calls-%d", getpid());
    return listens("unix", name);
}

/* The file of one that is gone: it is taken over, or if that is not to be known, the address is in use. */
static int listens_unix_again(void)
{
    char path[TEMP_PATH];
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    CHECK_EQ(close(open(temp_path(path), O_RDWR | O_CLOEXEC)), 0);
    CHECK_EQ(unlink(path), 0);
    snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    CHECK_EQ(close(fd), 0);
    int r = listens("unix", path);
    unlink(path);
    return r == -EADDRINUSE ? 0 : r;
}

/* --- accepting -------------------------------------------------------------------------------------------------- */

static int accepts(const struct peer *p, bool blocking)
{
    int r, flags = fcntl(p->listener, F_GETFL);
    int client = socket(p->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(client, &p->any, p->len), 0);
    CHECK_EQ(fcntl(p->listener, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags), 0);
    r = pirn_accept(p->listener, NULL, NULL);
    CHECK_EQ(fcntl(p->listener, F_SETFL, flags), 0);
    r = shut(r);
    CHECK_EQ(close(client), 0);
    drain(p);
    return r;
}

static int accepts_tcp(void)
{
    return accepts(&tcp, false);
}

static int accepts_tcp_blocking(void)
{
    return accepts(&tcp, true);
}

static int accepts_unix_blocking(void)
{
    return accepts(&local, true);
}

/* --- reading and writing ---------------------------------------------------------------------------------------- */

#define BYTES "a few bytes"
#define N (sizeof BYTES)

static struct iovec *two_parts(struct iovec *iov, char *buf)
{
    iov[0] = (struct iovec){buf, 3};
    iov[1] = (struct iovec){buf + 3, N - 3};
    return iov;
}

static int check_read(long r, const char *buf)
{
    CHECK(r < 0 || r == (long)N);
    CHECK(r < 0 || memcmp(buf, BYTES, N) == 0);
    return r < 0 ? (int)r : 0;
}

static int check_written(long r)
{
    CHECK(r < 0 || r == (long)N);
    return r < 0 ? (int)r : 0;
}

/* From one end to the other; the first error. What is told once did not happen, and can be done again. */
static int passes(const int *fds)
{
    char buf[N] = BYTES, got[N] = "";
    struct iovec iov[2];
    int first = 0, r;
    for (int i = 0; i < 2; i++) {
        do {
            r = check_written(i ? pirn_writev(fds[1], two_parts(iov, buf), 2)
                                : pirn_write(fds[1], buf, N));
            first = first ? first : r;
        } while (r);
        do {
            r = check_read(
                i ? pirn_readv(fds[0], two_parts(iov, got), 2) : pirn_read(fds[0], got, N), got);
            first = first ? first : r;
        } while (r);
    }
    return first;
}

static int passes_and_closes(const int *fds)
{
    int r = passes(fds);
    close_both(fds);
    return r;
}

static int uses_pipe(void)
{
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    return passes_and_closes(fds);
}

static int uses_sockets(void)
{
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return passes_and_closes(fds);
}

static int uses_adopted(void)
{
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    int err = first_error(pirn_fd_adopt(fds[0]), pirn_fd_adopt(fds[1]));
    int r = passes_and_closes(fds);
    return err ? err : r;
}

/* Told once, as above. */
static int uses_datagrams(void)
{
    char buf[N] = BYTES, got[N] = "";
    struct iovec iov[2];
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    int fds[2], first = 0, r;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; i < 2; i++) {
        do {
            two_parts(iov, buf);
            r = check_written(i ? pirn_sendmsg(fds[1], &msg, 0)
                                : pirn_sendto(fds[1], buf, N, 0, NULL, 0));
            first = first ? first : r;
        } while (r);
        do {
            two_parts(iov, got);
            r = check_read(i ? pirn_recvmsg(fds[0], &msg, 0)
                             : pirn_recvfrom(fds[0], got, N, 0, NULL, NULL),
                           got);
            first = first ? first : r;
        } while (r);
    }
    close_both(fds);
    return first;
}

static int uses_eventfd(void)
{
    uint64_t one = 1, got = 0;
    int fd = eventfd(0, EFD_CLOEXEC), first = 0, r;
    do {
        r = (int)pirn_write(fd, &one, sizeof one);
        first = first ? first : first_error(r, 0);
    } while (r < 0);
    do {
        r = (int)pirn_read(fd, &got, sizeof got);
        first = first ? first : first_error(r, 0);
    } while (r < 0);
    CHECK_EQ(got, 1);
    shut(fd);
    return first;
}

/* By its position, to the end. */
static int uses_file(void)
{
    enum { SIZE = 9000 };
    static unsigned char buf[SIZE + 1];
    int fd = temp_file(0);
    write_file(fd, SIZE);
    ssize_t r = pirn_read(fd, buf, sizeof buf);
    CHECK(r < 0 || r == SIZE);
    if (r > 0) {
        check_bytes(buf, (size_t)r, 0);
        r = pirn_read(fd, buf, sizeof buf);
        CHECK_LE(r, 0);
    }
    r = r < 0 ? r : check_written(pirn_write(fd, BYTES, N));
    CHECK_EQ(close(fd), 0);
    return (int)r;
}

static int shuts_down(void)
{
    char c;
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    int r = pirn_shutdown(fds[1], SHUT_WR);
    r = r ? r : (int)pirn_read(fds[0], &c, 1);
    close_both(fds);
    return r;
}

/* --- waiting ---------------------------------------------------------------------------------------------------- */

static bool none_yet(uint32_t after)
{
    return at_load(&sys_fault.after, RELAXED) == after;
}

/* Until one of the calls was made, if the time was up before it began to wait. */
static int waits(void)
{
    char c;
    int fds[2], r;
    uint32_t after = at_load(&sys_fault.after, RELAXED);
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    do {
        CHECK_EQ(pirn_fd_deadline(fds[0], pirn_now() + PIRN_MS, 0), 0);
        r = (int)pirn_read(fds[0], &c, 1);
    } while (r == -ETIMEDOUT && none_yet(after));
    close_both(fds);
    return r == -ETIMEDOUT ? 0 : r;
}

/* The call itself, and what it looks at. */
static int waits_for_either(void)
{
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    int r = pirn_fd_wait(fds[0], PIRN_IN | PIRN_OUT, pirn_now() + 10 * PIRN_SEC);
    CHECK(r < 0 || r == (PIRN_IN | PIRN_OUT));
    close_both(fds);
    return r < 0 ? r : 0;
}

/* --- closing: the number is free in any case -------------------------------------------------------------------- */

static int closes_file(void)
{
    return pirn_close(temp_file(0));
}

static int closes_socket(void)
{
    struct linger l = {.l_onoff = 1, .l_linger = 1};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
    return pirn_close(fd);
}

/* --- files, children -------------------------------------------------------------------------------------------- */

static int reads_at(void)
{
    enum { SIZE = 9000 };
    static unsigned char buf[SIZE + 1];
    int fd = temp_file(0);
    write_file(fd, SIZE);
    ssize_t r = pirn_pread(fd, buf, sizeof buf, 0); /* and finds the end: two calls at least */
    CHECK(r < 0 || r <= SIZE);
    check_bytes(buf, r < 0 ? 0 : (size_t)r, 0);
    if (r >= 0 && r < SIZE) { /* some came before the error: which is told when it is asked again */
        r = -(int)at_load(&sys_fault.error, RELAXED);
    }
    CHECK_EQ(close(fd), 0);
    return r < 0 ? (int)r : 0;
}

static int writes_at(void)
{
    char got[N];
    int fd = temp_file(0);
    int r = check_written(pirn_pwrite(fd, BYTES, N, 5));
    CHECK(r || (pread(fd, got, N, 5) == (ssize_t)N && memcmp(got, BYTES, N) == 0));
    CHECK_EQ(close(fd), 0);
    return r;
}

static int syncs(void)
{
    int fd = temp_file(0);
    int r = first_error(pirn_fsync(fd), pirn_fdatasync(fd));
    CHECK_EQ(close(fd), 0);
    return r;
}

static int opens(void)
{
    int fd = pirn_open("/etc", O_RDONLY);
    return fd < 0 ? fd : close(fd);
}

/* By a helper, or the ring. */
static int opens_in_context(void)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background()), *old = pirn_ctx_use(ctx);
    int r = opens();
    pirn_ctx_use(old);
    pirn_ctx_release(ctx);
    return r;
}

static int sends_file(int flags)
{
    enum { SIZE = 9000 };
    static unsigned char buf[SIZE];
    int fds[2], fd = temp_file(0);
    off_t at = 0;
    write_file(fd, SIZE);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, fds), 0);
    ssize_t r = pirn_sendfile(fds[0], fd, &at, SIZE);
    CHECK(r < 0 || r == SIZE);
    if (r > 0) {
        CHECK_EQ(recv(fds[1], buf, SIZE, MSG_WAITALL), SIZE);
        check_bytes(buf, SIZE, 0);
    }
    close_both(fds);
    CHECK_EQ(close(fd), 0);
    return r < 0 ? (int)r : 0;
}

static int sends_file_plain(void)
{
    return sends_file(SOCK_NONBLOCK);
}

static int sends_file_blocking(void)
{
    return sends_file(0);
}

static void closes_once_counted(int fd, uint32_t after)
{
    while (none_yet(after))
        pirn_sleep(50 * PIRN_US);
    CHECK_EQ(close(fd), 0);
}

/* It ends when the pipe is closed: once one of the calls was made. */
static int waits_for_child(void)
{
    int fds[2], status = 0;
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        char c;
        close(fds[1]);
        _exit(read(fds[0], &c, 1) == 0 ? 7 : 1);
    }
    CHECK_EQ(close(fds[0]), 0);
    pirn_wg wg = {0};
    pirn_wg_go(&wg, closes_once_counted, fds[1], at_load(&sys_fault.after, RELAXED));
    pid_t r = pirn_wait_pid(pid, &status);
    pirn_wg_wait(&wg);
    if (r < 0) {
        CHECK_EQ(waitpid(pid, &status, 0), pid);
    }
    CHECK_EQ(WEXITSTATUS(status), 7);
    return r < 0 ? r : 0;
}

static int waits_for_child_in_context(void)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background()), *old = pirn_ctx_use(ctx);
    int r = waits_for_child();
    pirn_ctx_use(old);
    pirn_ctx_release(ctx);
    return r;
}

/* --- the table -------------------------------------------------------------------------------------------------- */

#define NO_ROOM EMFILE, ENFILE, ENOBUFS, ENOMEM
#define READS_AT (CALL(PREAD_NOWAIT) | CALL(PREAD) | CALL(RING_OP))

#define ROW_(use_, calls_, outcome_, made_, how_, ...)                                             \
    {                                                                                              \
        .name = #use_, .use = (use_), .calls = (calls_), .outcome = (outcome_), .made = (made_),   \
        .how = (how_), .errors = {                                                                 \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define WELL(use, calls, ...) ROW_(use, calls, GOES_WELL, false, ANYHOW, __VA_ARGS__)
#define TOLD(use, calls, ...) ROW_(use, calls, IS_TOLD, false, ANYHOW, __VA_ARGS__)
#define EITHER(use, calls, ...) ROW_(use, calls, WELL_OR_TOLD, false, ANYHOW, __VA_ARGS__)
#define MADE_WELL(use, calls, ...) ROW_(use, calls, GOES_WELL, true, ANYHOW, __VA_ARGS__)
#define MADE_TOLD(use, calls, ...) ROW_(use, calls, IS_TOLD, true, ANYHOW, __VA_ARGS__)
#define EPOLL_WELL(use, calls, ...) ROW_(use, calls, GOES_WELL, false, BY_EPOLL, __VA_ARGS__)
#define EPOLL_EITHER(use, calls, ...) ROW_(use, calls, WELL_OR_TOLD, false, BY_EPOLL, __VA_ARGS__)
#define RING_WELL(use, calls, ...) ROW_(use, calls, GOES_WELL, false, BY_RING, __VA_ARGS__)
#define RING_TOLD(use, calls, ...) ROW_(use, calls, IS_TOLD, false, BY_RING, __VA_ARGS__)

static const struct row rows[] = {
    /* one that was interrupted, or takes its time, goes on by itself */
    MADE_WELL(connects_tcp, CALL(CONNECT), EINTR, EINPROGRESS),
    WELL(connects_tcp, CALL(CONNECT), EAGAIN),
    TOLD(connects_tcp, CALL(CONNECT), EALREADY, ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL, ETIMEDOUT,
         ECONNRESET, EPERM, ENOBUFS, ENOMEM),
    TOLD(connects_tcp, CALL(OPTION) | CALL(NAME), ENOBUFS, ENOMEM),
    WELL(connects_tcp, CALL(FLAGS), EPERM),
    MADE_WELL(connects_tcp_blocking, CALL(CONNECT), EINTR, EINPROGRESS, EALREADY),
    WELL(connects_tcp_blocking, CALL(CONNECT), EAGAIN),
    TOLD(connects_tcp_blocking, CALL(CONNECT), ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL, ETIMEDOUT,
         EPERM, ENOBUFS, ENOMEM),
    WELL(connects_tcp_blocking, CALL(OPTION) | CALL(SET_OPTION), EPERM, ENOMEM),
    WELL(connects_unix, CALL(CONNECT), EAGAIN, EINTR),
    TOLD(connects_unix, CALL(CONNECT), ECONNREFUSED, ENOENT, EACCES, ENOMEM),
    WELL(connects_unix_blocking, CALL(CONNECT), EAGAIN, EINTR),
    TOLD(connects_unix_blocking, CALL(CONNECT), ECONNREFUSED, ENOENT, EACCES, ENOMEM),
    MADE_WELL(dials_tcp, CALL(CONNECT), EINTR, EINPROGRESS),
    WELL(dials_tcp, CALL(CONNECT), EAGAIN),
    TOLD(dials_tcp, CALL(CONNECT), EALREADY, ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL, NO_ROOM),
    WELL(dials_tcp, CALL(SOCKET), EINTR),
    TOLD(dials_tcp, CALL(SOCKET), NO_ROOM, EACCES, EAFNOSUPPORT),
    WELL(dials_tcp, CALL(SET_OPTION), ENOMEM, ENOPROTOOPT),
    TOLD(dials_tcp, CALL(OPTION), ENOBUFS, ENOMEM),
    EITHER(dials_tcp, CALL(NAME), ENOBUFS, ENOMEM), /* one only asks who it is */
    EITHER(dials_any, CALL(CONNECT), EAGAIN, EALREADY, ENETUNREACH, EADDRNOTAVAIL, NO_ROOM),
    WELL(dials_any, CALL(SOCKET), EINTR),
    EITHER(dials_any, CALL(SOCKET), NO_ROOM, EAFNOSUPPORT),
    EITHER(dials_any, CALL(OPTION) | CALL(NAME), ENOBUFS, ENOMEM),
    WELL(dials_any, CALL(SET_OPTION), ENOMEM),
    WELL(dials_unix, CALL(CONNECT), EAGAIN, EINTR),
    TOLD(dials_unix, CALL(CONNECT), ECONNREFUSED, ENOENT, EACCES, ENOMEM),
    TOLD(dials_unix, CALL(SOCKET), NO_ROOM),
    TOLD(dials_udp, CALL(SOCKET) | CALL(CONNECT), NO_ROOM, EACCES, ENETUNREACH),
    WELL(dials_udp, CALL(SOCKET), EINTR),

    WELL(listens_tcp, CALL(SOCKET) | CALL(BIND) | CALL(LISTEN), EINTR),
    TOLD(listens_tcp, CALL(SOCKET) | CALL(BIND) | CALL(LISTEN), NO_ROOM, EACCES, EADDRINUSE,
         EADDRNOTAVAIL, EAFNOSUPPORT),
    WELL(listens_tcp, CALL(SET_OPTION), ENOMEM, ENOPROTOOPT),
    WELL(listens_udp, CALL(SOCKET) | CALL(BIND), EINTR),
    TOLD(listens_udp, CALL(SOCKET) | CALL(BIND), NO_ROOM, EACCES, EADDRINUSE),
    WELL(listens_unix, CALL(SOCKET) | CALL(BIND) | CALL(LISTEN), EINTR),
    TOLD(listens_unix, CALL(SOCKET) | CALL(BIND) | CALL(LISTEN), NO_ROOM, EACCES, EADDRINUSE),
    WELL(listens_unix_again, CALL(SOCKET) | CALL(BIND) | CALL(LISTEN), EINTR),
    EITHER(listens_unix_again, CALL(SOCKET) | CALL(BIND) | CALL(LISTEN), NO_ROOM, EACCES),
    WELL(listens_unix_again, CALL(STAT) | CALL(CONNECT) | CALL(UNLINK), EACCES, ENOMEM, EINTR),

    /* of the connection, or for want of something: the next, or a pause */
    WELL(accepts_tcp, CALL(ACCEPT), EINTR, EAGAIN, ECONNABORTED, EPROTO, EPERM, ENETDOWN,
         EHOSTUNREACH, NO_ROOM),
    TOLD(accepts_tcp, CALL(ACCEPT), EINVAL, EOPNOTSUPP, ENOTSOCK, ECONNRESET),
    WELL(accepts_tcp, CALL(FLAGS) | CALL(POLL), EINTR, EPERM, ENOMEM),
    WELL(accepts_tcp_blocking, CALL(ACCEPT), EINTR, EAGAIN, ECONNABORTED, EPROTO, EPERM, ENETDOWN,
         EHOSTUNREACH, NO_ROOM),
    TOLD(accepts_tcp_blocking, CALL(ACCEPT), EINVAL, EOPNOTSUPP, ENOTSOCK, ECONNRESET),
    WELL(accepts_tcp_blocking, CALL(FLAGS) | CALL(POLL), EINTR, EPERM, ENOMEM),
    WELL(accepts_unix_blocking, CALL(ACCEPT), EINTR, EAGAIN, EPERM, NO_ROOM),
    WELL(accepts_unix_blocking, CALL(FLAGS) | CALL(POLL), EINTR, EPERM, ENOMEM),

    WELL(uses_pipe, CALL(READ) | CALL(WRITE), EINTR, EAGAIN),
    TOLD(uses_pipe, CALL(READ) | CALL(WRITE), EIO, ENOMEM, ENOBUFS, EPIPE, ECONNRESET),
    WELL(uses_pipe, CALL(READ), EOPNOTSUPP, ENOSYS),
    WELL(uses_sockets, CALL(READ) | CALL(WRITE), EINTR, EAGAIN),
    TOLD(uses_sockets, CALL(READ) | CALL(WRITE), EIO, NO_ROOM, EPIPE, ECONNRESET, ETIMEDOUT),
    WELL(uses_sockets, CALL(READ), EOPNOTSUPP, ENOSYS),
    WELL(uses_adopted, CALL(READ) | CALL(WRITE), EINTR),
    TOLD(uses_adopted, CALL(READ) | CALL(WRITE), EIO, NO_ROOM, EPIPE, ECONNRESET, ETIMEDOUT),
    WELL(uses_adopted, CALL(OPTION) | CALL(NAME), NO_ROOM),
    WELL(uses_datagrams, CALL(READ) | CALL(WRITE), EINTR),
    TOLD(uses_datagrams, CALL(READ) | CALL(WRITE), EIO, NO_ROOM, ECONNREFUSED),
    WELL(uses_eventfd, CALL(READ) | CALL(WRITE), EINTR, EAGAIN),
    TOLD(uses_eventfd, CALL(READ) | CALL(WRITE), EIO, ENOMEM),
    WELL(uses_file, CALL(READ) | CALL(WRITE), EINTR),
    EITHER(uses_file, CALL(READ), EOPNOTSUPP, ENOSYS), /* of a plain read it is told */
    TOLD(uses_file, CALL(WRITE), EIO, ENOSPC, EDQUOT, EFBIG),
    TOLD(uses_file, CALL(READ), EIO, ENOMEM, ESTALE),
    WELL(uses_file, CALL(SEEK) | CALL(STAT), EOVERFLOW, EIO),
    TOLD(shuts_down, CALL(SHUTDOWN), ENOTCONN, ENOBUFS),

    EPOLL_EITHER(waits, CALL(EPOLL_ADD), ENOMEM, ENOSPC),
    EPOLL_WELL(waits, CALL(EPOLL_REMOVE), ENOENT, ENOMEM),
    EPOLL_WELL(waits, CALL(EPOLL_WAIT), EINTR),
    RING_WELL(waits, CALL(RING_OP), EINTR, ECANCELED, EAGAIN, NO_ROOM),
    RING_WELL(waits, CALL(RING_ENTER), EINTR, EAGAIN, EBUSY),
    WELL(waits_for_either, CALL(POLL), EINTR, ENOMEM, EINVAL),

    MADE_WELL(closes_file, CALL(CLOSE), EINTR),
    MADE_TOLD(closes_file, CALL(CLOSE), EIO, ENOSPC, EDQUOT),
    WELL(closes_file, CALL(DUP) | CALL(OPTION) | CALL(STAT), NO_ROOM, EIO),
    MADE_WELL(closes_socket, CALL(CLOSE), EINTR),
    MADE_TOLD(closes_socket, CALL(CLOSE), EIO, ENOBUFS),
    WELL(closes_socket, CALL(DUP) | CALL(OPTION), NO_ROOM),

    WELL(reads_at, READS_AT, EINTR),
    WELL(reads_at, CALL(PREAD_NOWAIT), EAGAIN, EOPNOTSUPP, ENOSYS, EINVAL),
    EITHER(reads_at, CALL(PREAD_NOWAIT) | CALL(PREAD), EIO, ENOMEM, ESTALE),
    WELL(writes_at, CALL(PWRITE) | CALL(RING_OP), EINTR),
    RING_WELL(writes_at, CALL(RING_OP), EAGAIN, ECANCELED),
    TOLD(writes_at, CALL(PWRITE) | CALL(RING_OP), EIO, ENOSPC, EDQUOT, EFBIG),
    RING_TOLD(writes_at, CALL(SEEK), EIO, EOVERFLOW),
    RING_WELL(writes_at, CALL(RING_ENTER), EINTR, EAGAIN, EBUSY),
    WELL(syncs, CALL(FSYNC) | CALL(RING_OP), EINTR),
    RING_WELL(syncs, CALL(RING_OP), EAGAIN, ECANCELED),
    TOLD(syncs, CALL(FSYNC) | CALL(RING_OP), EIO, ENOSPC, EDQUOT, EROFS),
    WELL(opens, CALL(OPEN), EINTR),
    TOLD(opens, CALL(OPEN), EMFILE, ENFILE, ENOMEM, ENOENT, EACCES, ENXIO),
    WELL(opens_in_context, CALL(OPEN) | CALL(RING_OP), EINTR),
    RING_WELL(opens_in_context, CALL(RING_OP), ECANCELED),
    TOLD(opens_in_context, CALL(OPEN) | CALL(RING_OP), EMFILE, ENFILE, ENOMEM, ENOENT, EACCES,
         ENXIO, EAGAIN),
    WELL(sends_file_plain, CALL(SENDFILE), EINTR, EAGAIN),
    TOLD(sends_file_plain, CALL(SENDFILE), EIO, ENOMEM, EPIPE, ECONNRESET),
    TOLD(sends_file_plain, CALL(FLAGS), EPERM),
    WELL(sends_file_blocking, CALL(SENDFILE), EINTR, EAGAIN),
    TOLD(sends_file_blocking, CALL(SENDFILE), EIO, ENOMEM, EPIPE, ECONNRESET),
    WELL(sends_file_blocking, CALL(STAT) | CALL(OPTION) | CALL(POLL), EINTR, ENOMEM),
    WELL(waits_for_child, CALL(WAITPID), EINTR),
    TOLD(waits_for_child, CALL(WAITPID), ECHILD),
    WELL(waits_for_child, CALL(PIDFD_OPEN), EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM),
    WELL(waits_for_child_in_context, CALL(WAITPID), EINTR),
    WELL(waits_for_child_in_context, CALL(PIDFD_OPEN), EMFILE, ENOMEM, ENOSYS),
};

static void mistake(const struct row *row, int error, uint32_t n, const char *what, int result)
{
    char text[200];
    snprintf(text, sizeof text, "%s, error %d of call %u: %s (%d)", row->name, error, n, what,
             result);
    FAIL(text);
}

static void sweep(const struct row *row, int error)
{
    bool failed = true;
    for (uint32_t n = 0; failed && n < MOST; n++) {
        int before = count_fds();
        fail_so(row->calls, n, error, 1, row->made);
        int r = row->use();
        failed = did_fail();
        fail_no_more();
        if (!failed && n == 0)
            mistake(row, error, n, "it is never made", r);
        if (count_fds() != before)
            mistake(row, error, n, "descriptors more or less", count_fds() - before);
        bool told = r == -error, well = r == 0;
        enum outcome wanted = failed ? row->outcome : GOES_WELL;
        if (!(wanted == GOES_WELL ? well : wanted == IS_TOLD ? told : well || told))
            mistake(row, error, n, "the result", r);
    }
    if (failed)
        mistake(row, error, MOST, "it is made more often than is tried", 0);
}

FILE_TEST(each_call_fails, .timeout = 60)
{
    enum how how = uring_up() ? BY_RING : BY_EPOLL;
    CHECK_EQ(pirn_close(pirn_listen("tcp", "127.0.0.1:0")), 0); /* a poller is there */
    peer_begin(&tcp, AF_INET);
    peer_begin(&local, AF_UNIX);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int e = 0; e < NERRORS && rows[i].errors[e]; e++)
            if (rows[i].how == ANYHOW || rows[i].how == how)
                sweep(&rows[i], rows[i].errors[e]);
    peer_end(&tcp);
    peer_end(&local);
}

/* --- from the start: the pollers, or the ring, are made ---------------------------------------------------------- */

struct start {
    uint64_t calls;
    int io;         /* enum pirn_io */
    bool ring, net; /* the ring is there all the same; the result is good in any case */
    int errors[NERRORS];
};

static bool ring_was_up;

static int first_wait(void *arg)
{
    char c;
    (void)arg;
    ring_was_up = uring_up();
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    if (listener < 0)
        return listener;
    char addr[64];
    addr_of(listener, addr, sizeof addr);
    int fd = pirn_dial("tcp", addr), r = fd;
    if (fd >= 0) {
        CHECK_EQ(pirn_fd_deadline(fd, pirn_now() + PIRN_MS, 0), 0);
        r = (int)pirn_read(fd, &c, 1);
        CHECK_EQ(pirn_close(fd), 0);
    }
    CHECK_EQ(pirn_close(listener), 0);
    return r == -ETIMEDOUT ? 0 : r;
}

static const struct start starts[] = {
    {CALL(EPOLL_OPEN), PIRN_IO_EPOLL, false, false, {EMFILE, ENFILE, ENOMEM}},
    {CALL(EPOLL_ADD), PIRN_IO_EPOLL, false, false, {ENOMEM, ENOSPC}},
    {CALL(EVENTFD), PIRN_IO_EPOLL, false, false, {EMFILE, ENFILE, ENODEV, ENOMEM}},
    {CALL(EVENTFD), PIRN_IO_URING, false, true, {EMFILE, ENOMEM}},
    {CALL(RING_SETUP), PIRN_IO_URING, false, true, {EPERM, ENOSYS, EMFILE, ENFILE, ENOMEM}},
    {CALL(RING_SETUP), PIRN_IO_URING, true, true, {EINVAL}}, /* the next set of flags */
    {CALL(RING_REGISTER), PIRN_IO_URING, false, true, {EPERM, EINVAL, ENOMEM}},
    {CALL(RING_ENTER), PIRN_IO_URING, true, true, {EINTR}},
};

/* The N-th fails, for the first three. */
static void start_fails(const struct start *s, int error)
{
    for (uint32_t n = 0; n < 3; n++) {
        int before = count_all_fds();
        fail(s->calls, n, error, 1);
        int r = pirn_run_config(&(pirn_config){.io = s->io}, first_wait, NULL);
        bool failed = did_fail();
        fail_no_more();
        CHECK(failed || n > 0);
        CHECK_EQ(count_all_fds(), before);
        CHECK(r == 0 || (r == -error && failed && !s->net));
        CHECK(s->net || n > 0 || r < 0); /* the first of all is needed */
        CHECK_EQ(ring_was_up, s->io == PIRN_IO_URING && (s->ring || !failed));
    }
}

TEST_ATTR(starts_fail, PROCS)
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.io = PIRN_IO_URING}, first_wait, NULL), 0);
    bool ring = ring_was_up; /* in this build, on this kernel */
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        for (int e = 0; e < NERRORS && starts[i].errors[e]; e++)
            if (ring || starts[i].io == PIRN_IO_EPOLL)
                start_fails(&starts[i], starts[i].errors[e]);
}

/* --- others ------------------------------------------------------------------------------------------------------- */

/* A kernel before 5.11, or a filter: it sleeps in whole milliseconds. */
TEST_RUN_ATTR(no_pwait2, PROCS, .env = "PIRN_DEBUG=io=epoll")
{
    if (!tool_knows_new_calls())
        SKIP("it is not used here");
    fail(CALL(EPOLL_PWAIT2), 0, ENOSYS, 1);
    CHECK_EQ(waits(), 0);
    CHECK(did_fail());
    fail(CALL(EPOLL_PWAIT2), 0, EIO, 1); /* it is not asked again */
    pirn_sleep(PIRN_MS);
    CHECK(!did_fail());
    fail_no_more();
}

/* Whether a listener would block is not to be known: it must not, or nothing could end the call. */
static void accepts_in_vain(bool adopt)
{
    int fd, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(listen(listener, 1), 0);
    do { /* again if the time was up before it began */
        fail_no_more();
        CHECK_EQ(pirn_fd_deadline(listener, pirn_now() + 2 * PIRN_MS, 0), 0);
        fail(CALL(FLAGS), adopt, EPERM, 1);
        if (adopt)
            CHECK_EQ(pirn_fd_adopt(listener), 0);
        fd = pirn_accept(listener, NULL, NULL);
        CHECK_EQ(fd, -ETIMEDOUT);
    } while (!did_fail());
    shut(listener);
}

TEST_RUN_ATTR(flags_are_not_known, PROCS)
{
    accepts_in_vain(false);
    accepts_in_vain(true);
}
