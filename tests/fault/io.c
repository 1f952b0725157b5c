/* SPDX-License-Identifier: MIT */
/*
 * Each system call of the I/O layer fails, at its N-th call: a client and a server that talk go on, or are
 * told; nothing hangs, and no descriptor is left behind.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../go/files.h"
#include "../go/net.h"
#include "fail.h"

static const char *const hello = "hello, and a few bytes more";
#define HELLO 27

/* Any error will do. */
static void answer(int fd)
{
    char buf[64];
    ssize_t n;
    while ((n = pirn_read(fd, buf, sizeof buf)) > 0 && pirn_write_all(fd, buf, (size_t)n) == n) {
    }
    CHECK_EQ(pirn_close(fd), 0);
}

static void serve(int listener, atomic_bool *over)
{
    while (!atomic_load(over)) {
        int fd = pirn_accept(listener, NULL, NULL);
        if (fd >= 0) {
            answer(fd);
        }
    }
}

static bool ask(const char *addr)
{
    char buf[64];
    int fd = pirn_dial_until("tcp", addr, pirn_now() + 10 * PIRN_SEC);
    if (fd < 0) {
        return false;
    }
    bool ok = pirn_write_all(fd, hello, HELLO) == HELLO && pirn_read_full(fd, buf, HELLO) == HELLO
              && memcmp(buf, hello, HELLO) == 0;
    CHECK_EQ(pirn_close(fd), 0);
    return ok;
}

#define EPOLLS (CALL(EPOLL_OPEN) | CALL(EPOLL_ADD) | CALL(EVENTFD))
#define LISTENS (CALL(SOCKET) | CALL(SET_OPTION) | CALL(BIND) | CALL(LISTEN))

/* Several questions, the calls that may fail among them. How many were answered. */
static int talk(uint64_t calls, uint32_t after, int error)
{
    char addr[64];
    atomic_bool over = false;
    pirn_wg wg = {0};
    int good = 0;
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    CHECK_GE(listener, 0);
    int before = count_fds() - 1; /* now that there are pollers */
    addr_of(listener, addr, sizeof addr);
    pirn_wg_go(&wg, serve, listener, &over);
    fail(calls, after, error, 1);
    for (int i = 0; i < 4; i++) {
        good += ask(addr);
    }
    fail_no_more();
    CHECK(ask(addr));
    atomic_store(&over, true);
    CHECK_EQ(pirn_close(listener), 0);
    pirn_wg_wait(&wg);
    CHECK_EQ(count_fds(), before);
    return good;
}

static void each_of(uint64_t calls, const int *errors, int n, int at_least)
{
    for (int e = 0; e < n; e++) {
        for (uint32_t after = 0; after < 6; after++) {
            int good = talk(calls, after, errors[e]);
            CHECK_GE(good, errors[e] == EINTR ? 4 : at_least);
        }
    }
}

#define EACH(call, at_least, ...)                                                                  \
    do {                                                                                           \
        int errors_[] = {__VA_ARGS__};                                                             \
        each_of(CALL(call), errors_, (int)(sizeof errors_ / sizeof errors_[0]), at_least);         \
    } while (0)

TEST_RUN_ATTR(reads, PROCS)
{
    /* not EAGAIN while there is something: that an edge means what it says is the kernel's promise */
    EACH(READ, 3, EINTR, ECONNRESET, ENOMEM);
}

TEST_RUN_ATTR(writes, PROCS)
{
    EACH(WRITE, 3, EINTR, ECONNRESET, ENOBUFS, EPIPE);
}

/* The server waits, and goes on. */
TEST_RUN_ATTR(accepts, PROCS)
{
    EACH(ACCEPT, 4, EINTR, ECONNABORTED, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPROTO);
}

/* Errors of connections that don't end: it does not spin, and the deadline ends it. */
TEST_RUN_ATTR(accepts_for_ever, PROCS)
{
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    CHECK_GE(listener, 0);
    CHECK_EQ(pirn_fd_deadline(listener, pirn_now() + 10 * PIRN_MS, 0), 0);
    fail(CALL(ACCEPT), 0, EPERM, EVERY_TIME);
    int fd = pirn_accept(listener, NULL, NULL);
    fail_no_more();
    CHECK_EQ(fd, -ETIMEDOUT);
    CHECK_EQ(pirn_close(listener), 0);
}

TEST_RUN_ATTR(connects, PROCS)
{
    EACH(CONNECT, 3, ECONNREFUSED, EADDRNOTAVAIL, ENOMEM);
    EACH(SOCKET, 2, EMFILE, ENOBUFS, ENOMEM);
}

/* EAGAIN of a connect: one address is tried again, of several that is the error, and one that the program knows. */
TEST_RUN_ATTR(connects_again, PROCS)
{
    char addr[64];
    int listener = pirn_listen("tcp", ":0");
    CHECK_GE(listener, 0);
    addr_of(listener, addr, sizeof addr);
    int before = count_sockets();
    fail(CALL(CONNECT), 0, EAGAIN, 2);
    int fd = pirn_dial("tcp4", strrchr(addr, ':'));
    CHECK_GE(fd, 0);
    CHECK_EQ(pirn_close(fd), 0);
    fail(CALL(CONNECT), 0, EAGAIN, EVERY_TIME);
    fd = pirn_dial_until("tcp", strrchr(addr, ':'), pirn_now() + 20 * PIRN_MS);
    fail_no_more();
    CHECK(fd == -EAGAIN || fd == -ETIMEDOUT); /* two addresses, or one */
    CHECK_EQ(count_sockets(), before);
    CHECK_EQ(pirn_close(listener), 0);
}

/* Registering fails: who must wait is told. */
TEST_RUN_ATTR(registering, PROCS)
{
    EACH(EPOLL_ADD, 2, ENOMEM, ENOSPC);
}

TEST_RUN_ATTR(polls, PROCS)
{
    EACH(EPOLL_WAIT, 4, EINTR);
}

/* The pollers themselves can't be made, and then they can. */
static int no_pollers(void *arg)
{
    (void)arg;
    char c;
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    for (uint32_t after = 0; after < 5; after++) {
        fail(EPOLLS, after, EMFILE, 1);
        CHECK_EQ(pirn_fd_deadline(fd[0], pirn_now() + 10 * PIRN_SEC, 0), 0);
        ssize_t r = pirn_read(fd[0], &c, 1);
        fail_no_more();
        CHECK_EQ(r, -EMFILE);
    }
    CHECK_EQ(pirn_fd_deadline(fd[0], pirn_now() + PIRN_MS, 0), 0);
    CHECK_EQ(pirn_read(fd[0], &c, 1), -ETIMEDOUT);
    CHECK_EQ(pirn_close(fd[0]), 0);
    CHECK_EQ(pirn_close(fd[1]), 0);
    return 0;
}

TEST(making_pollers)
{
    CHECK_EQ(pirn_run(no_pollers, NULL), 0);
}

/* --- listening ------------------------------------------------------------------------------------------ */

/* Its N-th call fails, until so many go well that it listens: an option is no reason not to, the rest is told. */
static void listen_fails(const char *net, const char *at, const int *errors, int n)
{
    int told = 0, calls = 0;
    CHECK_EQ(pirn_close(pirn_listen("tcp", "127.0.0.1:0")), 0); /* a poller is there */
    int before = count_fds();
    for (int e = 0; e < n; e++) {
        for (uint32_t after = 0; after < 8; after++) {
            fail(LISTENS, after, errors[e], 1);
            int fd = pirn_listen(net, at);
            bool failed = did_fail();
            fail_no_more();
            calls += failed;
            if (fd >= 0) {
                CHECK_EQ(pirn_close(fd), 0);
            } else {
                CHECK(failed);
                CHECK_EQ(fd, -errors[e]);
                told++;
            }
            CHECK_EQ(count_fds(), before);
        }
    }
    CHECK_GE(told, 2 * n); /* socket and bind */
    CHECK_LT(calls, 8 * n);
}

TEST_RUN_ATTR(listens, PROCS)
{
    static const int errors[] = {EMFILE, ENOBUFS, ENOMEM, EACCES};
    int n = sizeof errors / sizeof errors[0];
    char name[64];
    snprintf(name, sizeof name, "@pirn-fault-io-%d", getpid());
    listen_fails("tcp", "127.0.0.1:0", errors, n);
    listen_fails("udp", "127.0.0.1:0", errors, n);
    listen_fails("unix", name, errors, n);
}

/* --- datagrams, and Unix sockets ------------------------------------------------------------------------- */

/* What is interrupted is done again; other errors are told once, and no datagram is lost by them. */
static void two_talk(int a, int b)
{
    static const int errors[] = {EINTR, ENOBUFS, ENOMEM};
    char c = 0;
    for (int e = 0; e < 3; e++) {
        int told = errors[e] == EINTR ? 1 : -errors[e];
        fail(CALL(WRITE), 0, errors[e], 1);
        CHECK_EQ(pirn_sendto(a, "x", 1, 0, NULL, 0), told);
        if (told < 0)
            CHECK_EQ(pirn_sendto(a, "x", 1, 0, NULL, 0), 1);
        fail(CALL(READ), 0, errors[e], 1);
        CHECK_EQ(pirn_recvfrom(b, &c, 1, 0, NULL, NULL), told);
        if (told < 0)
            CHECK_EQ(pirn_recvfrom(b, &c, 1, 0, NULL, NULL), 1);
        CHECK_EQ(c, 'x');
        CHECK(did_fail());
        fail_no_more();
    }
    CHECK_EQ(pirn_close(a), 0);
    CHECK_EQ(pirn_close(b), 0);
}

TEST_RUN_ATTR(datagrams, PROCS)
{
    char addr[64];
    int b = pirn_listen("udp", "127.0.0.1:0");
    CHECK_GE(b, 0);
    addr_of(b, addr, sizeof addr);
    int a = pirn_dial("udp", addr);
    CHECK_GE(a, 0);
    two_talk(a, b);
}

TEST_RUN_ATTR(unix_sockets, PROCS)
{
    int fd[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    two_talk(fd[0], fd[1]);
}

/* A dial with several addresses needs one, and is told that there is none. */
static int no_pollers_to_dial(void *arg)
{
    const char *port = arg;
    fail(EPOLLS, 0, EMFILE, EVERY_TIME);
    int fd = pirn_dial_until("tcp", port, pirn_now() + 10 * PIRN_MS);
    fail_no_more();
    CHECK_EQ(fd, -EMFILE);
    fd = pirn_dial_until("tcp", port, pirn_now() + 10 * PIRN_MS);
    CHECK(fd == -ETIMEDOUT || fd == -ECONNREFUSED); /* the other address */
    return 0;
}

TEST_ATTR(dialling_without_pollers, PROCS)
{
    struct full f;
    full_begin(&f, INADDR_LOOPBACK);
    CHECK_EQ(pirn_run(no_pollers_to_dial, strchr(f.addr, ':')), 0);
    full_end(&f);
}

/* Its sockets can't be waited for: they look ready, and it must not spin. */
TEST_RUN_ATTR(dialling_without_registering, PROCS)
{
    struct full f;
    full_begin(&f, INADDR_LOOPBACK);
    CHECK_EQ(pirn_close(pirn_listen("tcp", "127.0.0.1:0")), 0); /* a poller is there */
    fail(EPOLLS, 0, ENOSPC, EVERY_TIME);
    long before = test_cpu_us();
    int fd = pirn_dial_until("tcp", strchr(f.addr, ':'), pirn_now() + 200 * PIRN_MS);
    CHECK_LT(test_cpu_us() - before, 60000);
    fail_no_more();
    CHECK_EQ(fd, -ETIMEDOUT);
    full_end(&f);
}

/* --- a write in two ways ---------------------------------------------------------------------------------------- */

/* Once the writer has filled the pipe. */
static void *read_late(void *arg)
{
    static char buf[1 << 16];
    size_t *n = arg;
    int fd = (int)*n, full = fcntl(fd, F_GETPIPE_SZ);
    *n = 0;
    for (int holds = 0; holds < full; usleep(100)) {
        CHECK_EQ(ioctl(fd, FIONREAD, &holds), 0);
    }
    for (ssize_t r; (r = read(fd, buf, sizeof buf)) > 0;) {
        *n += (size_t)r;
    }
    return NULL;
}

/* The first part without waiting; then it can't be waited for, and the rest is written by the call that
 * blocks. Both count, or who goes on writes the rest twice. */
TEST_RUN_ATTR(part_without_waiting, .procs = "1")
{
    enum { MUCH = 100000 }; /* more than a pipe holds */
    static char much[MUCH];
    int fd[2];
    pthread_t reader;
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(pirn_fd_wait(fd[0], PIRN_IN, pirn_now() + PIRN_MS),
             -ETIMEDOUT); /* a poller is there */
    size_t got = (size_t)fd[0];
    fail(EPOLLS, 0, EPERM, 1);
    CHECK_EQ(pthread_create(&reader, NULL, read_late, &got), 0);
    CHECK_EQ(pirn_write(fd[1], much, MUCH), MUCH);
    fail_no_more();
    CHECK_EQ(pirn_close(fd[1]), 0);
    CHECK_EQ(pthread_join(reader, NULL), 0);
    CHECK_EQ(got, MUCH);
    CHECK_EQ(pirn_close(fd[0]), 0);
}

/* --- descriptors run out: hazard 46 ------------------------------------------------------------------------------ */

static void serve_all(int listener)
{
    int fd;
    while ((fd = pirn_accept(listener, NULL, NULL)) >= 0) {
        pirn_go(answer, fd);
    }
    CHECK_EQ(fd, -EBADF);
}

static void accept_one(int listener, pirn_ctx *ctx, atomic_int *result)
{
    pirn_ctx_use(ctx);
    atomic_store(result, pirn_accept(listener, NULL, NULL));
}

/* Who was woken for a connection has no descriptor for it, and is cancelled: another takes it. */
TEST_RUN_ATTR(accept_is_given_up, PROCS)
{
    char addr[64];
    pirn_wg wg = {0};
    atomic_int first = -1, second = -1;
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    addr_of(listener, addr, sizeof addr);
    pirn_wg_go(&wg, accept_one, listener, ctx, &first);
    let_wait(); /* else the other one may be woken: nothing is shown then, and nothing fails */
    pirn_wg_go(&wg, accept_one, listener, pirn_ctx_background(), &second);
    let_wait();
    fail(CALL(ACCEPT), 0, EMFILE, EVERY_TIME);
    int client = pirn_dial("tcp", addr);
    CHECK_GE(client, 0);
    while (at_load(&sys_fault.times, RELAXED) == EVERY_TIME) { /* nobody has been refused yet */
        pirn_yield();
    }
    pirn_ctx_cancel(ctx, 0);
    while (atomic_load(&first) == -1) {
        pirn_sleep(PIRN_MS);
    }
    fail_no_more();
    pirn_wg_wait(&wg);
    CHECK_EQ(first, -ECANCELED);
    CHECK_GE(second, 0);
    CHECK_EQ(pirn_close(second), 0);
    CHECK_EQ(pirn_close(client), 0);
    CHECK_EQ(pirn_close(listener), 0);
    pirn_ctx_release(ctx);
}

TEST_RUN_ATTR(no_descriptors_for_accept, PROCS)
{
    enum { CLIENTS = 20 };
    char addr[64], buf[64];
    int clients[CLIENTS];
    struct rlimit old;
    pirn_wg wg = {0};
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    addr_of(listener, addr, sizeof addr);
    pirn_wg_go(&wg, serve_all, listener);
    CHECK(ask(addr));
    getrlimit(RLIMIT_NOFILE, &old);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = pirn_dial("tcp", addr);
        CHECK_GE(clients[i], 0);
        if (i == 0) { /* from now on the server has none */
            fail(CALL(ACCEPT), 0, EMFILE, EVERY_TIME);
        }
    }
    long before = test_cpu_us();
    pirn_sleep(100 * PIRN_MS);
    CHECK_LT(test_cpu_us() - before, TEST_TSAN || TEST_ASAN ? 60000 : 20000);
    fail_no_more();
    for (int i = 0; i < CLIENTS; i++) { /* all are served in the end */
        CHECK_EQ(pirn_write_all(clients[i], hello, HELLO), HELLO);
        CHECK_EQ(pirn_read_full(clients[i], buf, HELLO), HELLO);
        CHECK_EQ(pirn_close(clients[i]), 0);
    }
    CHECK_EQ(pirn_close(listener), 0);
    pirn_wg_wait(&wg);
}
