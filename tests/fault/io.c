/* SPDX-License-Identifier: MIT */
/*
 * Each system call of the I/O layer fails, at its N-th call: a client and a server that talk go on, or are
 * told; nothing hangs, and no descriptor is left behind.
 */
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../go/net.h"
#include "os/sysio.h"

#define PROCS .procs = "1,2,4,16"

static void fail(unsigned calls, uint32_t after, int error, uint32_t times)
{
    at_store(&sys_fault.calls, 0, RELAXED);
    at_store(&sys_fault.after, after, RELAXED);
    at_store(&sys_fault.error, (uint32_t)error, RELAXED);
    at_store(&sys_fault.times, times, RELAXED);
    at_store(&sys_fault.calls, calls, RELAXED);
}

static void fail_no_more(void)
{
    at_store(&sys_fault.calls, 0, RELAXED);
}

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

/* Several questions, the calls that may fail among them. How many were answered. */
static int talk(unsigned calls, uint32_t after, int error)
{
    char addr[64];
    atomic_bool over = false;
    pirn_wg wg = {0};
    int good = 0, before = count_sockets();
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    CHECK_GE(listener, 0);
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
    CHECK_EQ(count_sockets(), before);
    return good;
}

static void each_of(unsigned calls, const int *errors, int n, int at_least)
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
        each_of(1u << (call), errors_, (int)(sizeof errors_ / sizeof errors_[0]), at_least);       \
    } while (0)

TEST_RUN_ATTR(reads, PROCS)
{
    /* not EAGAIN while there is something: that an edge means what it says is the kernel's promise */
    EACH(SYS_CALL_READ, 3, EINTR, ECONNRESET, ENOMEM);
}

TEST_RUN_ATTR(writes, PROCS)
{
    EACH(SYS_CALL_WRITE, 3, EINTR, ECONNRESET, ENOBUFS, EPIPE);
}

/* The server waits, and goes on. */
TEST_RUN_ATTR(accepts, PROCS)
{
    EACH(SYS_CALL_ACCEPT, 4, EINTR, ECONNABORTED, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPROTO);
}

TEST_RUN_ATTR(connects, PROCS)
{
    EACH(SYS_CALL_CONNECT, 3, ECONNREFUSED, EADDRNOTAVAIL, ENOMEM);
    EACH(SYS_CALL_SOCKET, 2, EMFILE, ENOBUFS, ENOMEM);
}

/* EAGAIN of a connect: one address is tried again, of several that is the error, and one that the program knows. */
TEST_RUN_ATTR(connects_again, PROCS)
{
    char addr[64];
    int listener = pirn_listen("tcp", ":0");
    CHECK_GE(listener, 0);
    addr_of(listener, addr, sizeof addr);
    int before = count_sockets();
    fail(1u << SYS_CALL_CONNECT, 0, EAGAIN, 2);
    int fd = pirn_dial("tcp4", strrchr(addr, ':'));
    CHECK_GE(fd, 0);
    CHECK_EQ(pirn_close(fd), 0);
    fail(1u << SYS_CALL_CONNECT, 0, EAGAIN, 1u << 30);
    fd = pirn_dial_until("tcp", strrchr(addr, ':'), pirn_now() + 20 * PIRN_MS);
    fail_no_more();
    CHECK(fd == -EAGAIN || fd == -ETIMEDOUT); /* two addresses, or one */
    CHECK_EQ(count_sockets(), before);
    CHECK_EQ(pirn_close(listener), 0);
}

/* Registering fails: who must wait is told. */
TEST_RUN_ATTR(registering, PROCS)
{
    EACH(SYS_CALL_EPOLL, 2, ENOMEM, ENOSPC);
}

TEST_RUN_ATTR(polls, PROCS)
{
    EACH(SYS_CALL_POLL, 4, EINTR);
}

/* The pollers themselves can't be made, and then they can. */
static int no_pollers(void *arg)
{
    (void)arg;
    char c;
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    for (uint32_t after = 0; after < 5; after++) {
        fail(1u << SYS_CALL_EPOLL, after, EMFILE, 1);
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

/* --- descriptors run out: hazard 46 ------------------------------------------------------------------------------ */

static long cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec
           + u.ru_stime.tv_usec;
}

static void serve_all(int listener)
{
    int fd;
    while ((fd = pirn_accept(listener, NULL, NULL)) >= 0) {
        pirn_go(answer, fd);
    }
    CHECK_EQ(fd, -EBADF);
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
            fail(1u << SYS_CALL_ACCEPT, 0, EMFILE, 1u << 30);
        }
    }
    long before = cpu_us();
    pirn_sleep(100 * PIRN_MS);
    CHECK_LT(cpu_us() - before, TEST_TSAN || TEST_ASAN ? 60000 : 20000);
    fail_no_more();
    for (int i = 0; i < CLIENTS; i++) { /* all are served in the end */
        CHECK_EQ(pirn_write_all(clients[i], hello, HELLO), HELLO);
        CHECK_EQ(pirn_read_full(clients[i], buf, HELLO), HELLO);
        CHECK_EQ(pirn_close(clients[i]), 0);
    }
    CHECK_EQ(pirn_close(listener), 0);
    pirn_wg_wait(&wg);
}
