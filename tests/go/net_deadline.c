/* SPDX-License-Identifier: MIT */
/* Deadlines, cancellation and contexts of calls on descriptors. */
#include <stdatomic.h>
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

/* A listener whose queue is full does not answer. */
TEST_RUN_ATTR(dial, PROCS)
{
    char addr[64];
    int fds[64], n = 0, fd;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(bind(listener, (struct sockaddr *)&any, sizeof any), 0);
    CHECK_EQ(listen(listener, 0), 0);
    addr_of(listener, addr, sizeof addr);
    while ((fd = pirn_dial_until("tcp", addr, in(100 * PIRN_MS))) >= 0 && n < 64) {
        fds[n++] = fd;
    }
    CHECK_EQ(fd, -ETIMEDOUT);
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 20 * PIRN_MS);
    pirn_ctx *before = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_dial("tcp", addr), -ETIMEDOUT);
    pirn_ctx_use(before);
    pirn_ctx_release(ctx);
    while (n) {
        CHECK_EQ(pirn_close(fds[--n]), 0);
    }
    CHECK_EQ(close(listener), 0);
}

/* --- changes while somebody waits ------------------------------------------------------------------------- */

static void read_into(int fd, atomic_long *result)
{
    char c;
    atomic_store(result, pirn_read(fd, &c, 1));
}

TEST_RUN_ATTR(past_ends_a_wait, PROCS)
{
    struct pair p = tcp_pair();
    for (int i = 0; i < 20; i++) {
        pirn_wg wg = {0};
        atomic_long r[3] = {1, 1, 1};
        CHECK_EQ(pirn_fd_deadline(p.a, i % 2 ? in(PIRN_SEC * 1000) : 0, 0), 0);
        for (int k = 0; k < 3; k++) {
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

/* Go's TestReadTimeoutMustNotReturn: one that was cleared does not fire. */
TEST_RUN_ATTR(cleared, PROCS)
{
    struct pair p = tcp_pair();
    pirn_wg wg = {0};
    atomic_long r = 99;
    CHECK_EQ(pirn_fd_deadline(p.a, in(20 * PIRN_MS), 0), 0);
    pirn_wg_go(&wg, read_into, p.a, &r);
    let_wait();
    CHECK_EQ(pirn_fd_deadline(p.a, 0, 0), 0);
    pirn_sleep(40 * PIRN_MS);
    if (atomic_load(&r) == 99) { /* else this machine was so slow that it came too late */
        CHECK_EQ(pirn_write(p.b, "x", 1), 1);
        pirn_wg_wait(&wg);
        CHECK_EQ(r, 1);
    } else {
        pirn_wg_wait(&wg);
        CHECK_EQ(r, -ETIMEDOUT);
    }
    close_pair(p);
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

/* Go's TestNonpollableDeadline. */
TEST_RUN(of_a_file)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(pirn_fd_deadline(fd, in(PIRN_SEC), 0), -EINVAL);
    CHECK_EQ(pirn_close(fd), 0);
    CHECK_EQ(pirn_fd_deadline(fd, 0, 0), -EBADF);
    CHECK_EQ(pirn_fd_deadline(-1, 0, 0), -EBADF);
}
