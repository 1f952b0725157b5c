/* SPDX-License-Identifier: MIT */
/*
 * pirn_connect and pirn_sendfile on descriptors of the program's that are blocking: others go on meanwhile, and
 * close, deadlines, contexts and cancels end them, as they do on any other. Flags stay as they are.
 */
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "go/files.h"
#include "net.h"

enum ending { CLOSE, DEADLINE, NEW_DEADLINE, CONTEXT, CANCEL, ENDINGS };

/* --- what is ended ---------------------------------------------------------------------------------------- */

struct call {
    int fd, in, peer; /* in, peer: of a sendfile */
    const struct sockaddr *to;
    socklen_t len;
    pirn_ctx *ctx;
    atomic_long got;
};

static void calls(struct call *c)
{
    off_t at = 0;
    pirn_ctx_use(c->ctx);
    atomic_store(&c->got, c->to ? pirn_connect(c->fd, c->to, c->len)
                                : pirn_sendfile(c->fd, c->in, &at, 1 << 30));
}

static long end_it(const struct call *c, enum ending ending)
{
    switch (ending) {
    case CLOSE: CHECK_EQ(pirn_close(c->fd), 0); return -EBADF;
    case DEADLINE: return -ETIMEDOUT; /* it was set before */
    case NEW_DEADLINE: CHECK_EQ(pirn_fd_deadline(c->fd, 0, 1), 0); return -ETIMEDOUT;
    case CONTEXT: pirn_ctx_cancel(c->ctx, 0); return -ECANCELED;
    default: CHECK_EQ(pirn_fd_cancel(c->fd), 0); return -ECANCELED;
    }
}

/* The call waits for what does not come. Its result; it was to be `*expected`, if it did nothing. */
static long end_a_call(struct call *c, enum ending ending, long *expected)
{
    pirn_wg wg = {0};
    c->ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    atomic_store(&c->got, 1);
    if (ending == DEADLINE) {
        CHECK_EQ(pirn_fd_deadline(c->fd, 0, pirn_now() + 20 * PIRN_MS), 0);
    }
    pirn_wg_go(&wg, calls, c);
    for (int i = 0; i < 10; i++) { /* with one P, too */
        pirn_sleep(PIRN_MS);
    }
    int n = 0;
    SLEEP_UNTIL(c->to || ending == DEADLINE || (ioctl(c->peer, FIONREAD, &n) == 0 && n > 0));
    long got = atomic_load(&c->got);
    CHECK(got == 1 || ending == DEADLINE);
    *expected = end_it(c, ending);
    pirn_wg_wait(&wg);
    pirn_ctx_release(c->ctx);
    return atomic_load(&c->got);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFL) >= 0;
}

/* --- connect ------------------------------------------------------------------------------------------------ */

static void connect_and_end(const struct sockaddr *to, socklen_t len, enum ending ending)
{
    struct timeval t = {.tv_sec = 1};
    socklen_t size = sizeof t;
    struct call c = {.to = to, .len = len};
    long expected;
    c.fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(c.fd, 0);
    long got = end_a_call(&c, ending, &expected);
    CHECK_EQ(got, expected);
    if (ending == CLOSE) {
        CHECK_EQ(fcntl(c.fd, F_GETFL), -1);
        return;
    }
    CHECK_EQ(fcntl(c.fd, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(getsockopt(c.fd, SOL_SOCKET, SO_SNDTIMEO, &t, &size), 0);
    CHECK(t.tv_sec == 0 && t.tv_usec == 0);
    CHECK_EQ(pirn_close(c.fd), 0);
    CHECK(!is_open(c.fd));
}

TEST_RUN_ATTR(connect_tcp, PROCS)
{
    struct full f;
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    full_begin(&f, INADDR_LOOPBACK);
    CHECK_EQ(getsockname(f.listener, (struct sockaddr *)&at, &len), 0);
    for (int i = 0; i < ENDINGS; i++) {
        connect_and_end((struct sockaddr *)&at, len, (enum ending)i);
    }
    full_end(&f);
}

/* A listener whose queue has no room. */
struct full_unix {
    struct sockaddr_un at;
    socklen_t len;
    int listener, first;
};

static void full_unix_begin(struct full_unix *f)
{
    memset(f, 0, sizeof *f);
    f->at.sun_family = AF_UNIX;
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(f->listener, (struct sockaddr *)&f->at, sizeof f->at.sun_family),
             0); /* any name */
    f->len = sizeof f->at;
    CHECK_EQ(getsockname(f->listener, (struct sockaddr *)&f->at, &f->len), 0);
    CHECK_EQ(listen(f->listener, 0), 0);
    f->first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(f->first, (struct sockaddr *)&f->at, f->len), 0);
}

static void full_unix_end(struct full_unix *f)
{
    CHECK_EQ(close(f->first), 0);
    CHECK_EQ(close(f->listener), 0);
}

TEST_RUN_ATTR(connect_unix, PROCS)
{
    struct full_unix f;
    full_unix_begin(&f);
    for (int i = 0; i < ENDINGS; i++) {
        connect_and_end((struct sockaddr *)&f.at, f.len, (enum ending)i);
    }
    full_unix_end(&f);
}

/* Not ended, it does come to its end. */
TEST_RUN_ATTR(connect_later, PROCS)
{
    struct full_unix f;
    full_unix_begin(&f);
    pirn_wg wg = {0};
    struct call c = {.to = (struct sockaddr *)&f.at, .len = f.len, .ctx = pirn_ctx_background()};
    atomic_store(&c.got, 1);
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pirn_wg_go(&wg, calls, &c);
    pirn_sleep(15 * PIRN_MS);
    long got = atomic_load(&c.got);
    CHECK_EQ(got, 1);
    for (int i = 0; i < 2; i++) {
        int fd = accept4(f.listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK_GE(fd, 0);
        CHECK_EQ(close(fd), 0);
    }
    pirn_wg_wait(&wg);
    got = atomic_load(&c.got);
    CHECK_EQ(got, 0);
    CHECK_EQ(pirn_close(c.fd), 0);
    full_unix_end(&f);
}

/* Ended too early, and called once more: it waits for the connection that is under way. */
TEST_RUN_ATTR(connect_again, PROCS)
{
    struct full f;
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    full_begin(&f, INADDR_LOOPBACK);
    CHECK_EQ(getsockname(f.listener, (struct sockaddr *)&at, &len), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pirn_fd_deadline(fd, 0, pirn_now() + 10 * PIRN_MS), 0);
        CHECK_EQ(pirn_connect(fd, (struct sockaddr *)&at, len), -ETIMEDOUT);
    }
    CHECK_EQ(pirn_fd_deadline(fd, 0, 0), 0);
    for (int i = 0; i < f.n; i++) {
        int other = accept4(f.listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK_GE(other, 0);
        CHECK_EQ(close(other), 0);
    }
    CHECK_EQ(pirn_connect(fd, (struct sockaddr *)&at, len),
             0); /* its next attempt, after a second */
    CHECK_EQ(pirn_close(fd), 0);
    full_end(&f);
}

/* Errors are its own, and a time-out of the program's is kept. */
TEST_RUN_ATTR(connect_fails, PROCS)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval t = {.tv_sec = 3}, after = {0};
    socklen_t len = sizeof at, size = sizeof t;
    int closed = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(closed, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(getsockname(closed, (struct sockaddr *)&at, &len), 0);
    for (int i = 0; i < 4; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        t.tv_sec = i % 2 ? 3 : 0;
        CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t), 0);
        CHECK_EQ(pirn_connect(fd, (struct sockaddr *)&at, len), -ECONNREFUSED);
        CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &after, &size), 0);
        CHECK_EQ(after.tv_sec, t.tv_sec);
        CHECK_EQ(after.tv_usec, 0);
        CHECK_EQ(pirn_close(fd), 0);
    }
    CHECK_EQ(close(closed), 0);
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(pirn_connect(fd[1], (struct sockaddr *)&at, len), -ENOTSOCK);
    close(fd[0]), close(fd[1]);
}

/* --- sendfile ----------------------------------------------------------------------------------------------- */

enum { SIZE = 16 << 20 };
enum kind { UNIX, TCP, PIPE, KINDS };

/* Blocking all of them; of TCP one end is pirn's. */
static void make(enum kind kind, int fd[2])
{
    if (kind == UNIX) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    } else if (kind == PIPE) {
        int p[2];
        CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
        fd[0] = p[1], fd[1] = p[0];
    } else {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof at;
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(bind(listener, (struct sockaddr *)&at, len), 0);
        CHECK_EQ(listen(listener, 1), 0);
        CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &len), 0);
        fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(connect(fd[0], (struct sockaddr *)&at, len), 0);
        fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK_GE(fd[1], 0);
        CHECK_EQ(close(listener), 0);
    }
}

/* Nobody reads: what was sent until then is the result. */
static void send_and_end(enum kind kind, enum ending ending, int file)
{
    int fd[2];
    long expected;
    make(kind, fd);
    struct call c = {.fd = fd[0], .in = file, .peer = fd[1]};
    long got = end_a_call(&c, ending, &expected);
    if (ending == DEADLINE && got == expected) {
        got = 0; /* it began too late */
    } else {
        CHECK(got > 0 && got < SIZE);
    }
    if (ending == CLOSE) {
        CHECK(!is_open(c.fd));
    } else {
        CHECK_EQ(fcntl(c.fd, F_GETFL) & O_NONBLOCK, 0);
        CHECK_EQ(pirn_close(c.fd), 0);
    }
    static unsigned char buf[65536];
    long all = 0;
    for (ssize_t n; (n = pirn_read(fd[1], buf, sizeof buf)) > 0; all += n) {
        check_bytes(buf, (size_t)n, (size_t)all);
    }
    CHECK_EQ(all, got);
    CHECK_EQ(pirn_close(fd[1]), 0);
}

TEST_RUN_ATTR(sendfile_ends, PROCS)
{
    int file = temp_file(0);
    write_file(file, SIZE);
    for (int i = 0; i < KINDS * ENDINGS; i++) {
        send_and_end((enum kind)(i % KINDS), (enum ending)(i / KINDS), file);
    }
    CHECK_EQ(close(file), 0);
}

/* It never has to wait, for somebody reads: it is ended all the same. */
static void reads_on(int fd, atomic_long *all)
{
    static char buf[1 << 20];
    for (ssize_t n; (n = pirn_read(fd, buf, sizeof buf)) > 0;) {
        atomic_fetch_add(all, n);
    }
}

static void sends_for_ever(int fd, int in, atomic_long *sent)
{
    for (;;) {
        off_t at = 0;
        ssize_t n = pirn_sendfile(fd, in, &at, SIZE);
        atomic_fetch_add(sent, n > 0 ? n : 0);
        if (n < SIZE) {
            CHECK(n > 0 || n == -EBADF);
            return;
        }
    }
}

TEST_RUN_ATTR(sendfile_to_a_reader, PROCS)
{
    int file = temp_file(0);
    write_file(file, SIZE);
    for (int i = 0; i < 2 * KINDS; i++) {
        int fd[2];
        atomic_long all = 0, sent = 0;
        pirn_wg wg = {0}, reader = {0};
        make((enum kind)(i % KINDS), fd);
        pirn_wg_go(&reader, reads_on, fd[1], &all);
        pirn_wg_go(&wg, sends_for_ever, fd[0], file, &sent);
        if (i >= KINDS) { /* two, of which one sends at a time */
            pirn_wg_go(&wg, sends_for_ever, fd[0], file, &sent);
        }
        SLEEP_UNTIL(atomic_load(&all) > SIZE / 2);
        CHECK_EQ(pirn_close(fd[0]), 0);
        pirn_wg_wait(&wg);
        pirn_wg_wait(&reader);
        long got = atomic_load(&all), given = atomic_load(&sent);
        CHECK_EQ(got, given);
        CHECK_EQ(pirn_close(fd[1]), 0);
    }
    CHECK_EQ(close(file), 0);
}
