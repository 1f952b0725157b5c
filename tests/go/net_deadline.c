/* SPDX-License-Identifier: MIT */
/* Deadlines, cancellation and contexts of calls on descriptors. */
#include <limits.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net.h"

#define PROCS .procs = "1,2,4,16"

static pirn_ns in(pirn_ns ns)
{
    return pirn_now() + ns;
}

/* --- Go's TestReadTimeout, TestWriteTimeout, TestAcceptTimeout, TestDialTimeout -------------------------- */

static void read_times_out(int fd, pirn_ns ns)
{
    char c;
    pirn_ns begin = pirn_now();
    CHECK_EQ(pirn_fd_deadline(fd, ns > 0 ? begin + ns : 1, 0), 0);
    for (int i = 0; i < 3; i++) { /* again and again */
        CHECK_EQ(pirn_read(fd, &c, 1), -ETIMEDOUT);
    }
    CHECK_GE(pirn_now() - begin, ns);
    CHECK_LT(pirn_now() - begin, ns + 5 * PIRN_SEC); /* Go's TestReadTimeoutFluctuation */
}

TEST_RUN_ATTR(read, PROCS)
{
    static const pirn_ns various[] = {-1, 1, PIRN_US, 100 * PIRN_US, PIRN_MS, 20 * PIRN_MS};
    struct pair p = tcp_pair();
    char c;
    for (size_t i = 0; i < sizeof various / sizeof various[0]; i++) {
        read_times_out(p.a, various[i]);
    }
    CHECK_EQ(pirn_write(p.b, "x", 1), 1); /* one that begins too late does not begin */
    CHECK_EQ(pirn_read(p.a, &c, 1), -ETIMEDOUT);
    CHECK_EQ(pirn_fd_deadline(p.a, 0, 0), 0);
    CHECK_EQ(pirn_read(p.a, &c, 1), 1);
    CHECK_EQ(c, 'x');
    close_pair(p);
}

TEST_RUN_ATTR(write, PROCS)
{
    static char much[1 << 20];
    struct pair p = tcp_pair();
    CHECK_EQ(pirn_fd_deadline(p.a, 0, in(10 * PIRN_MS)), 0);
    ssize_t r;
    size_t sent = 0;
    while ((r = pirn_write(p.a, much, sizeof much)) > 0) {
        sent += (size_t)r;
    }
    CHECK_EQ(r, -ETIMEDOUT);
    CHECK_EQ(pirn_write(p.a, much, 1), -ETIMEDOUT);
    CHECK_EQ(pirn_fd_deadline(p.a, 0, 0), 0);
    CHECK_EQ(pirn_shutdown(p.a, SHUT_WR), 0);
    while ((r = pirn_read(p.b, much, sizeof much)) > 0) { /* what was said to be sent, was */
        sent -= (size_t)r;
    }
    CHECK_EQ(r, 0);
    CHECK_EQ(sent, 0);
    close_pair(p);
}

TEST_RUN_ATTR(accept, PROCS)
{
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    CHECK_EQ(pirn_fd_deadline(listener, in(5 * PIRN_MS), 0), 0);
    CHECK_EQ(pirn_accept(listener, NULL, NULL), -ETIMEDOUT);
    CHECK_EQ(pirn_accept(listener, NULL, NULL), -ETIMEDOUT);
    CHECK_EQ(pirn_close(listener), 0);
}

TEST_RUN_ATTR(udp, PROCS)
{
    char addr[64], buf[16];
    int a = pirn_listen("udp", "127.0.0.1:0");
    CHECK_GE(a, 0);
    CHECK_EQ(pirn_fd_deadline(a, in(5 * PIRN_MS), 0), 0);
    CHECK_EQ(pirn_recvfrom(a, buf, sizeof buf, 0, NULL, NULL), -ETIMEDOUT);
    CHECK_EQ(pirn_fd_deadline(a, 0, 0), 0);
    addr_of(a, addr, sizeof addr);
    int b = pirn_dial("udp", addr);
    CHECK_GE(b, 0);
    CHECK_EQ(pirn_write(b, "abc", 3), 3);
    CHECK_EQ(pirn_recvfrom(a, buf, sizeof buf, 0, NULL, NULL), 3);
    CHECK_EQ(pirn_close(a), 0);
    CHECK_EQ(pirn_close(b), 0);
}

/* Every call that can wait, with a deadline in the past, and one that comes; again and again. */
static ssize_t read_somehow(int fd, int how)
{
    char c, d;
    struct iovec iov[2] = {{&c, 1}, {&d, 1}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    switch (how) {
    case 0: return pirn_read(fd, &c, 1);
    case 1: return pirn_readv(fd, iov, 2);
    case 2: return pirn_recvfrom(fd, &c, 1, 0, NULL, NULL);
    case 3: return pirn_recvmsg(fd, &msg, 0);
    case 4: return pirn_read_full(fd, &c, 1);
    default: return pirn_fd_wait(fd, PIRN_IN, PIRN_NEVER);
    }
}

static ssize_t write_somehow(int fd, int how, int file)
{
    static char much[1 << 18];
    struct iovec iov[2] = {{much, 1 << 17}, {much, 1 << 17}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    off_t at = 0;
    switch (how) {
    case 0: return pirn_write(fd, much, sizeof much);
    case 1: return pirn_writev(fd, iov, 2);
    case 2: return pirn_sendto(fd, much, sizeof much, 0, NULL, 0);
    case 3: return pirn_sendmsg(fd, &msg, 0);
    case 4: return pirn_write_all(fd, much, sizeof much);
    case 5: return pirn_sendfile(fd, file, &at, 1 << 18);
    default: return pirn_fd_wait(fd, PIRN_OUT, PIRN_NEVER);
    }
}

/* Nothing can be read from, or written to, the first: a buffer of TCP may grow. */
static struct pair full_pair(void)
{
    int s[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s), 0);
    CHECK_EQ(pirn_fd_adopt(s[0]), 0);
    while (write(s[0], "x", 1) > 0) {
    }
    return (struct pair){s[0], s[1]};
}

TEST_RUN_ATTR(every_call, PROCS)
{
    int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct pair p = full_pair();
    for (int how = 0; how < 7; how++) {
        for (int i = 0; i < 3; i++) {
            pirn_ns when = i ? in(200 * PIRN_US) : 1, begin = pirn_now();
            CHECK_EQ(pirn_fd_deadline(p.a, when, when), 0);
            for (int again = 0; again < 2; again++) {
                CHECK_EQ(read_somehow(p.a, how), -ETIMEDOUT);
                CHECK_GE(pirn_now(), when);
                CHECK_LT(pirn_now() - begin, 5 * PIRN_SEC);
            }
            CHECK_EQ(pirn_fd_deadline(p.a, when, i ? in(200 * PIRN_US) : 1), 0);
            for (int again = 0; again < 2; again++) {
                CHECK_EQ(write_somehow(p.a, how, exe), -ETIMEDOUT);
            }
        }
    }
    close_pair(p);
    CHECK_EQ(pirn_close(exe), 0);
}

/* Go's TestVariousDeadlines: what comes without end does not hide that the time is up. */
static void send_without_end(int fd)
{
    static char much[1 << 16];
    while (pirn_write(fd, much, sizeof much) == (ssize_t)sizeof much) {
    }
}

TEST_RUN_ATTR(various_while_data_comes, PROCS)
{
    static const pirn_ns various[] = {1, 10 * PIRN_US, PIRN_MS, 8 * PIRN_MS};
    for (size_t i = 0; i < sizeof various / sizeof various[0]; i++) {
        char buf[4096];
        ssize_t r;
        pirn_wg wg = {0};
        struct pair p = tcp_pair();
        pirn_wg_go(&wg, send_without_end, p.b);
        pirn_ns begin = pirn_now();
        CHECK_EQ(pirn_fd_deadline(p.a, begin + various[i], 0), 0);
        while ((r = pirn_read(p.a, buf, sizeof buf)) > 0) {
        }
        CHECK_EQ(r, -ETIMEDOUT);
        CHECK_GE(pirn_now() - begin, various[i]);
        CHECK_LT(pirn_now() - begin, 5 * PIRN_SEC);
        CHECK_EQ(pirn_close(p.a), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(pirn_close(p.b), 0);
    }
}

/* A deadline in the past, or a context that has ended: nothing begins, however many addresses there are. */
TEST_RUN_ATTR(dial_too_late, PROCS)
{
    char addr[64];
    int listener = pirn_listen("tcp", ":0"), before = count_sockets();
    CHECK_GE(listener, 0);
    addr_of(listener, addr, sizeof addr);
    const char *port = strrchr(addr, ':');
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx_cancel(ctx, 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pirn_dial_until("tcp4", port, 1), -ETIMEDOUT);
        CHECK_EQ(pirn_dial_until("tcp", port, 1), -ETIMEDOUT);
        pirn_ctx *old = pirn_ctx_use(ctx);
        CHECK_EQ(pirn_dial("tcp4", port), -ECANCELED);
        CHECK_EQ(pirn_dial("tcp", port), -ECANCELED);
        pirn_ctx_use(old);
    }
    pirn_ctx_release(ctx);
    CHECK_EQ(count_sockets(), before);
    CHECK_EQ(pirn_close(listener), 0);
}

/* A listener whose queue is full does not answer. */
TEST_RUN_ATTR(dial, PROCS)
{
    struct full f;
    full_begin(&f, INADDR_LOOPBACK);
    CHECK_EQ(pirn_dial_until("tcp", f.addr, in(100 * PIRN_MS)), -ETIMEDOUT);
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 20 * PIRN_MS);
    pirn_ctx *before = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_dial("tcp", f.addr), -ETIMEDOUT);
    pirn_ctx_use(before);
    pirn_ctx_release(ctx);
    full_end(&f);
}

/* --- changes while somebody waits ------------------------------------------------------------------------- */

static void read_into(int fd, atomic_long *result)
{
    char c;
    atomic_store(result, pirn_read(fd, &c, 1));
}

static void wait_into(int fd, atomic_long *result)
{
    atomic_store(result, pirn_fd_wait(fd, PIRN_IN, PIRN_NEVER));
}

TEST_RUN_ATTR(past_ends_a_wait, PROCS)
{
    struct pair p = tcp_pair();
    for (int i = 0; i < 40; i++) {
        pirn_wg wg = {0};
        atomic_long r[3] = {1, 1, 1};
        CHECK_EQ(pirn_fd_deadline(p.a, i % 2 ? in(PIRN_SEC * 1000) : 0, 0), 0);
        pirn_wg_go(&wg, wait_into, p.a, &r[0]);
        for (int k = 1; k < 3; k++) {
            pirn_wg_go(&wg, read_into, p.a, &r[k]);
        }
        if (i % 4 < 2) {
            let_wait();
        }
        CHECK_EQ(pirn_fd_deadline(p.a, 1, 0), 0);
        pirn_wg_wait(&wg);
        for (int k = 0; k < 3; k++) {
            CHECK_EQ(r[k], -ETIMEDOUT);
        }
    }
    close_pair(p);
}

/* A select has a time of its own: it is not told that a descriptor is ready when a deadline was set. */
static void select_into(int fd, atomic_long *result)
{
    atomic_store(result, pirn_select(PIRN_READABLE(fd), PIRN_AFTER(5 * PIRN_MS)));
}

TEST_RUN_ATTR(a_select_goes_on, PROCS)
{
    struct pair p = tcp_pair();
    pirn_wg wg = {0};
    atomic_long r = 99;
    pirn_wg_go(&wg, select_into, p.a, &r);
    let_wait();
    CHECK_EQ(pirn_fd_deadline(p.a, in(PIRN_SEC), in(PIRN_SEC)), 0);
    CHECK_EQ(pirn_fd_deadline(p.a, 1, 1), 0);
    pirn_wg_wait(&wg);
    CHECK_EQ(r, 1);
    close_pair(p);
}

/* Go's Test{Read,Write,Accept}TimeoutMustNotReturn: one that was cleared in time does not fire; nor one that
 * was put off, before its new time. */
static void waits_somehow(int fd, int how, atomic_long *result)
{
    atomic_store(result, how == 0   ? read_somehow(fd, 0)
                         : how == 1 ? pirn_fd_wait(fd, PIRN_IN, PIRN_NEVER)
                         : how == 2 ? pirn_fd_wait(fd, PIRN_OUT, PIRN_NEVER)
                                    : pirn_accept(fd, NULL, NULL));
}

static void changed_in_time(int how, bool put_off)
{
    struct pair p = full_pair();
    int listener = pirn_listen("tcp", "127.0.0.1:0"), fd = how == 3 ? listener : p.a;
    pirn_wg wg = {0};
    atomic_long r = 99;
    pirn_ns first = in(15 * PIRN_MS), second = put_off ? in(40 * PIRN_MS) : 0;
    CHECK_EQ(pirn_fd_deadline(fd, first, first), 0);
    pirn_wg_go(&wg, waits_somehow, fd, how, &r);
    let_wait();
    CHECK_EQ(pirn_fd_deadline(fd, second, second), 0);
    bool in_time = pirn_now() < first; /* else this machine was too slow, and it may have come */
    if (put_off) {
        pirn_wg_wait(&wg);
        CHECK_EQ(r, -ETIMEDOUT);
        CHECK_GE(pirn_now(), in_time ? second : first);
    } else {
        pirn_sleep(first - pirn_now() + 5 * PIRN_MS);
        CHECK(!in_time || r == 99);
        CHECK_EQ(pirn_close(fd), 0);
        pirn_wg_wait(&wg);
        CHECK(r == -EBADF || (r == -ETIMEDOUT && !in_time));
    }
    CHECK_EQ(pirn_close(p.b), 0);
    if (put_off || fd != p.a) {
        CHECK_EQ(pirn_close(p.a), 0);
    }
    if (put_off || fd != listener) {
        CHECK_EQ(pirn_close(listener), 0);
    }
}

TEST_RUN_ATTR(cleared, PROCS)
{
    for (int how = 0; how < 4; how++) {
        changed_in_time(how, false);
    }
}

TEST_RUN_ATTR(put_off, PROCS)
{
    for (int how = 0; how < 4; how++) {
        changed_in_time(how, true);
    }
}

/* Cleared right before its time, while a call begins to wait, or finds that it is late: who was in time has
 * the last word. */
static void waits_later(int fd, int how, atomic_long *result, pirn_ns when)
{
    while (pirn_now() < when)
        pirn_yield();
    waits_somehow(fd, how, result);
}

static void cleared_at_the_last_moment(int how)
{
    enum { ROUNDS = 1000 };
    struct pair p = tcp_pair();
    int in_times = 0;
    char c;
    for (int i = 0; i < ROUNDS; i++) {
        pirn_wg wg = {0};
        atomic_long r = 99;
        pirn_ns first = in(30 * PIRN_US);
        CHECK_EQ(pirn_fd_deadline(p.a, first, 0), 0);
        pirn_wg_go(&wg, waits_later, p.a, how, &r, first - i % 8 * 500);
        while (pirn_now() < first - i % 7 * 500)
            pirn_yield();
        CHECK_EQ(pirn_fd_deadline(p.a, 0, 0), 0);
        bool in_time = pirn_now() < first;
        in_times += in_time;
        CHECK_EQ(pirn_write(p.b, "x", 1), 1);
        pirn_wg_wait(&wg);
        CHECK(r == (how ? PIRN_IN : 1) || (r == -ETIMEDOUT && !in_time));
        CHECK(r == 1 && !how ? true : pirn_read(p.a, &c, 1) == 1);
    }
    printf("%d times in time\n", in_times);
    close_pair(p);
}

TEST_RUN_ATTR(cleared_at_the_last_moment_of_a_read, PROCS)
{
    cleared_at_the_last_moment(0);
}

TEST_RUN_ATTR(cleared_at_the_last_moment_of_a_wait, PROCS)
{
    cleared_at_the_last_moment(1);
}

/* Set again and again, exactly when it fires, while data comes: nothing hangs, nothing is lost. */
static void feed(int fd, int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(pirn_write(fd, "x", 1), 1);
        pirn_sleep(i % 5 * 50 * PIRN_US);
    }
}

TEST_RUN_ATTR(race_with_data, PROCS)
{
    enum { BYTES = 200 };
    struct pair p = tcp_pair();
    pirn_wg wg = {0};
    char c;
    int got = 0;
    pirn_wg_go(&wg, feed, p.b, BYTES);
    while (got < BYTES) {
        CHECK_EQ(pirn_fd_deadline(p.a, in(100 * PIRN_US), 0), 0);
        ssize_t r = pirn_read(p.a, &c, 1);
        CHECK(r == 1 || r == -ETIMEDOUT);
        got += r == 1;
    }
    pirn_wg_wait(&wg);
    close_pair(p);
}

/* --- cancellation ------------------------------------------------------------------------------------------- */

TEST_RUN_ATTR(cancel_fd, PROCS)
{
    struct pair p = tcp_pair();
    pirn_wg wg = {0};
    atomic_long r[3] = {1, 1, 1};
    char c;
    for (int k = 0; k < 3; k++) {
        pirn_wg_go(&wg, read_into, p.a, &r[k]);
    }
    let_wait();
    CHECK_EQ(pirn_fd_cancel(p.a), 0);
    pirn_wg_wait(&wg);
    for (int k = 0; k < 3; k++) {
        CHECK_EQ(r[k], -ECANCELED);
    }
    CHECK_EQ(pirn_read(p.a, &c, 1), -ECANCELED);
    CHECK_EQ(pirn_write(p.a, &c, 1), -ECANCELED);
    CHECK_EQ(pirn_fd_wait(p.a, PIRN_IN, PIRN_NEVER), -ECANCELED);
    CHECK_EQ(pirn_close(p.a), 0);
    CHECK_EQ(pirn_fd_cancel(p.a), -EBADF);
    int again = listen_udp_as(p.a, true); /* the number is as new */
    CHECK_EQ(pirn_fd_wait(again, PIRN_IN, in(PIRN_MS)), -ETIMEDOUT);
    CHECK_EQ(pirn_close(again), 0);
    CHECK_EQ(pirn_close(p.b), 0);
}

static int read_in_group(int fd)
{
    char c;
    return (int)pirn_read(fd, &c, 1);
}

TEST_RUN_ATTR(context, PROCS)
{
    struct pair p = tcp_pair();
    char c;
    for (int i = 0; i < 20; i++) {
        pirn_group g;
        pirn_group_init(&g, NULL);
        pirn_group_go(&g, read_in_group, p.a);
        pirn_group_go(&g, read_in_group, p.a);
        if (i % 2) {
            let_wait();
        }
        pirn_group_cancel(&g);
        CHECK_EQ(pirn_group_wait(&g), -ECANCELED);
    }
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 5 * PIRN_MS);
    pirn_ctx *before = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_read(p.a, &c, 1), -ETIMEDOUT);
    CHECK_EQ(pirn_read(p.a, &c, 1), -ETIMEDOUT);
    CHECK_EQ(pirn_fd_wait(p.a, PIRN_IN | PIRN_OUT, PIRN_NEVER), -ETIMEDOUT);
    pirn_ctx_use(before);
    pirn_ctx_release(ctx);
    CHECK_EQ(pirn_write(p.b, "x", 1), 1);
    CHECK_EQ(pirn_read(p.a, &c, 1), 1);
    close_pair(p);
}

/* Rule R3: a context that has ended does not keep a descriptor open, nor its other end waiting. */
TEST_RUN_ATTR(closed_in_an_ended_context, PROCS)
{
    for (int i = 0; i < 10; i++) {
        char c;
        struct pair p = tcp_pair();
        pirn_wg wg = {0};
        atomic_long r = 99;
        pirn_wg_go(&wg, read_into, p.a, &r);
        if (i % 2) {
            let_wait();
        }
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background()), *old = pirn_ctx_use(ctx);
        pirn_ctx_cancel(ctx, 0);
        CHECK_EQ(pirn_close(p.a), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(r, -EBADF);
        CHECK_EQ(fcntl(p.a, F_GETFD), -1);
        pirn_ctx_use(old);
        pirn_ctx_release(ctx);
        CHECK_EQ(pirn_read(p.b, &c, 1), 0);
        CHECK_EQ(pirn_close(p.b), 0);
    }
}

/* Go's TestNonpollableDeadline. */
TEST_RUN(of_a_file)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(pirn_fd_deadline(fd, in(PIRN_SEC), 0), -EINVAL);
    CHECK_EQ(pirn_close(fd), 0);
    CHECK_EQ(pirn_fd_deadline(fd, 0, 0), -EBADF);
    CHECK_EQ(pirn_fd_deadline(-1, 0, 0), -EBADF);
    CHECK_EQ(pirn_fd_deadline(INT_MAX, 0, 0), -EBADF);
    CHECK_EQ(pirn_fd_cancel(INT_MAX), -EBADF);
    CHECK_EQ(pirn_fd_adopt(INT_MAX), -EBADF);
    fd = open("/", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(pirn_fd_deadline(fd, in(PIRN_SEC), 0), -EINVAL);
    CHECK_EQ(pirn_close(fd), 0);
}
