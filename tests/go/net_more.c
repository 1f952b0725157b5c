/* SPDX-License-Identifier: MIT */
/* More of what Go's tests of net assert: addresses, much data, many who wait, sharing one descriptor. */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net.h"
#include "temp.h"

#define PROCS .procs = "1,2,4,16"

/* --- addresses ---------------------------------------------------------------------------------------------- */

static int listen_and_close(const char *net, const char *addr)
{
    int fd = pirn_listen(net, addr);
    return fd < 0 ? fd : pirn_close(fd);
}

TEST_RUN(addresses)
{
    CHECK_EQ(listen_and_close("tcp", "127.0.0.1:0"), 0);
    char named[64];
    snprintf(named, sizeof named, "%s:0", this_machine());
    CHECK_EQ(listen_and_close("tcp4", named), 0);
    CHECK_EQ(listen_and_close("tcp4", ":0"), 0);
    CHECK_EQ(listen_and_close("udp", ":0"), 0);
    CHECK_EQ(listen_and_close("udp4", "127.0.0.1:"), 0);
    CHECK_EQ(listen_and_close("tcp", "[127.0.0.1]:0"), 0);
    CHECK_EQ(listen_and_close("tcp6", "127.0.0.1:0"), -EAFNOSUPPORT);
    CHECK_EQ(listen_and_close("tcp4", "[::1]:0"), -EAFNOSUPPORT);
    CHECK_EQ(listen_and_close("icmp", ":0"), -EAFNOSUPPORT);
    CHECK_EQ(listen_and_close(NULL, ":0"), -EAFNOSUPPORT);
    static const char *const wrong[] = {"",
                                        "127.0.0.1",
                                        "::1:80",
                                        "[::1",
                                        "[::1]",
                                        "[::1]80",
                                        "[]:80",
                                        "[[::1]]:80",
                                        "1.2.3.4:65536",
                                        "a]b:80",
                                        "1.2.3.4:99999999999",
                                        "127.0.0.1:+99999",
                                        "127.0.0.1:-1",
                                        "127.0.0.1: 0",
                                        ": 0",
                                        ":+0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(listen_and_close("tcp", wrong[i]), -EINVAL);
        CHECK_EQ(pirn_dial("tcp", wrong[i]), -EINVAL);
    }
    CHECK_EQ(listen_and_close("tcp", NULL), -EINVAL);
    CHECK_EQ(listen_and_close("unix", ""), -EINVAL);
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CHECK_EQ(listen_and_close("unix", longest), -ENAMETOOLONG);
    CHECK_EQ(pirn_dial("unix", "/nowhere/socket"), -ENOENT);
    int six = listen_and_close("tcp6", "[::1]:0");
    CHECK(six == 0 || six == -EAFNOSUPPORT || six == -EADDRNOTAVAIL);
}

/* The file of one that nobody listens to any more is no obstacle; one that is in use is. */
TEST_RUN(unix_path)
{
    char path[TEMP_PATH];
    int first = pirn_listen("unix", temp_name(path));
    CHECK_GE(first, 0);
    CHECK_EQ(pirn_listen("unix", path), -EADDRINUSE);
    CHECK_EQ(pirn_close(first), 0);
    int second = pirn_listen("unix", path);
    CHECK_GE(second, 0);
    int fd = pirn_dial("unix", path);
    CHECK_GE(fd, 0);
    CHECK_EQ(pirn_close(fd), 0);
    CHECK_EQ(pirn_close(second), 0);
    CHECK_EQ(pirn_dial("unix", path), -ECONNREFUSED);
    CHECK_EQ(unlink(path), 0);
}

/* What is there and no socket is the program's, and stays. */
TEST_RUN(unix_path_of_another_file)
{
    char file[TEMP_PATH], other[TEMP_PATH];
    struct stat st;
    temp_path(file);
    CHECK_EQ(pirn_listen("unix", file), -EADDRINUSE);
    CHECK_EQ(stat(file, &st), 0);
    CHECK(S_ISREG(st.st_mode));
    CHECK_EQ(symlink(file, temp_name(other)), 0);
    CHECK_EQ(pirn_listen("unix", other), -EADDRINUSE);
    CHECK_EQ(lstat(other, &st), 0);
    CHECK(S_ISLNK(st.st_mode));
    CHECK_EQ(unlink(other), 0);
    CHECK_EQ(mkfifo(temp_name(other), 0600), 0);
    CHECK_EQ(pirn_listen("unix", other), -EADDRINUSE);
    CHECK_EQ(lstat(other, &st), 0);
    CHECK(S_ISFIFO(st.st_mode));
    CHECK_EQ(unlink(other), 0);
    CHECK_EQ(unlink(file), 0);
}

/* DialClosedPortFailFast, and no descriptor is left behind. A name with two addresses, one of which answers. */
TEST_RUN_ATTR(dial, PROCS)
{
    char addr[64], name[64];
    int listener = pirn_listen("tcp4", "127.0.0.1:0");
    addr_of(listener, addr, sizeof addr);
    snprintf(name, sizeof name, "%s%s", this_machine(), strchr(addr, ':'));
    int empty[2] = {pirn_dial("tcp", name), pirn_dial("tcp", strchr(addr, ':'))};
    for (int i = 0; i < 2; i++) {
        CHECK_GE(empty[i], 0);
        CHECK_EQ(pirn_close(empty[i]), 0);
    }
    CHECK_EQ(pirn_close(listener), 0);
    int before = count_sockets();
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(pirn_dial("tcp", i % 2 ? addr : name), -ECONNREFUSED);
    }
    CHECK_EQ(count_sockets(), before);
}

/* A context ends a dial that several addresses take part in. */
static int dial_in_group(const char *addr)
{
    return pirn_dial("tcp", addr);
}

TEST_RUN_ATTR(dial_cancel, PROCS)
{
    struct full f;
    full_begin(&f, INADDR_LOOPBACK);
    int before = count_sockets();
    for (int i = 0; i < 4; i++) {
        pirn_group g;
        pirn_group_init(&g, NULL);
        pirn_group_go(&g, dial_in_group, (const char *)(i % 2 ? f.addr : strchr(f.addr, ':')));
        let_wait();
        pirn_group_cancel(&g);
        int r = pirn_group_wait(&g);
        CHECK(r == -ECANCELED || (r == -ECONNREFUSED && i % 2 == 0));
    }
    CHECK_EQ(count_sockets(), before);
    full_end(&f);
}

/* --- the runtime ends while somebody dials: the socket goes with it ----------------------------------------------- */

static void dial_for_ever(const char *addr)
{
    pirn_dial("tcp", addr);
}

static int leave_them_dialling(void *arg)
{
    const char *addr = arg;
    for (int i = 0; i < 3; i++) {
        pirn_go(dial_for_ever, addr);
    }
    let_wait();
    return 0;
}

TEST_ATTR(dial_is_dropped, PROCS)
{
    struct full f;
    full_begin(&f, INADDR_LOOPBACK);
    int before = count_sockets();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pirn_run(leave_them_dialling, f.addr), 0);
        CHECK_EQ(count_sockets(), before);
    }
    full_end(&f);
}

/* A thread goes on without the runtime, and closes its socket itself: once, for the number is another's then. */
static atomic_bool dials;

static void *dial_on_a_thread(void *addr)
{
    atomic_store(&dials, true);
    CHECK_EQ(pirn_dial_until("tcp", addr, pirn_now() + 50 * PIRN_MS), -ETIMEDOUT);
    return NULL;
}

static pthread_t dialler;

static int leave_a_thread_dialling(void *arg)
{
    atomic_store(&dials, false);
    CHECK_EQ(pthread_create(&dialler, NULL, dial_on_a_thread, arg), 0);
    while (!atomic_load(&dials)) {
        let_wait();
    }
    let_wait();
    return 0;
}

TEST_ATTR(thread_dials_on, PROCS)
{
    enum { MINE = 8 };
    struct full f;
    int mine[MINE];
    full_begin(&f, INADDR_LOOPBACK);
    CHECK_EQ(pirn_run(leave_a_thread_dialling, f.addr), 0);
    for (int i = 0; i < MINE; i++) {
        mine[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    CHECK_EQ(pthread_join(dialler, NULL), 0);
    for (int i = 0; i < MINE; i++) {
        CHECK_EQ(close(mine[i]), 0);
    }
    full_end(&f);
}

/* Nothing is asked for, and nothing taken; of nothing nothing is sent, but an empty datagram is one. */
TEST_RUN(zero_of_datagrams)
{
    char buf[8], addr[64];
    struct iovec none = {NULL, 0};
    for (int i = 0; i < 2; i++) {
        int fd = pirn_listen("udp", "127.0.0.1:0");
        CHECK_GE(fd, 0);
        addr_of(fd, addr, sizeof addr);
        int out = pirn_dial("udp", addr);
        CHECK_GE(out, 0);
        if (i) { /* not known to be sockets */
            int in2 = dup(fd), out2 = dup(out);
            CHECK_EQ(pirn_close(fd), 0);
            CHECK_EQ(pirn_close(out), 0);
            fd = in2, out = out2;
        }
        CHECK_EQ(pirn_writev(out, &none, 0), 0);
        CHECK_EQ(pirn_recvfrom(fd, buf, sizeof buf, MSG_DONTWAIT, NULL, NULL), -EAGAIN);
        CHECK_EQ(pirn_write(out, buf, 0), 0);
        CHECK_EQ(pirn_recvfrom(fd, buf, sizeof buf, MSG_DONTWAIT, NULL, NULL), 0);
        CHECK_EQ(pirn_write(out, "one", 3), 3);
        CHECK_EQ(pirn_read(fd, buf, 0), 0);
        CHECK_EQ(pirn_readv(fd, &none, 1), 0);
        CHECK_EQ(pirn_read(fd, buf, sizeof buf), 3);
        CHECK_EQ(pirn_close(fd), 0);
        CHECK_EQ(pirn_close(out), 0);
    }
}

/* Two addresses, one after the other. */
TEST(dial_without_a_runtime)
{
    char addr[64];
    struct full f;
    int listener = pirn_listen("tcp4", "127.0.0.1:0");
    CHECK_GE(listener, 0);
    addr_of(listener, addr, sizeof addr);
    int fd = pirn_dial("tcp", strchr(addr, ':'));
    CHECK_GE(fd, 0);
    CHECK_EQ(pirn_close(fd), 0);
    CHECK_EQ(pirn_close(listener), 0);
    CHECK_EQ(pirn_dial("tcp", strchr(addr, ':')), -ECONNREFUSED);
    listener = pirn_listen("tcp6", "[::1]:0");
    if (listener >= 0) {
        addr_of(listener, addr, sizeof addr);
        fd = pirn_dial("tcp", strrchr(addr, ':'));
        CHECK_GE(fd, 0);
        CHECK_EQ(pirn_close(fd), 0);
        CHECK_EQ(pirn_close(listener), 0);
    }
    full_begin(&f, INADDR_LOOPBACK);
    CHECK_EQ(pirn_dial_until("tcp", strchr(f.addr, ':'), pirn_now() + 10 * PIRN_MS), -ETIMEDOUT);
    full_end(&f);
}

/* --- zero bytes ------------------------------------------------------------------------------------------------ */

TEST_RUN(zero)
{
    char c, addr[64];
    struct pair p = tcp_pair();
    CHECK_EQ(pirn_read(p.a, &c, 0), 0);
    CHECK_EQ(pirn_read(p.a, NULL, 0), 0);
    CHECK_EQ(pirn_write(p.a, &c, 0), 0);
    CHECK_EQ(pirn_readv(p.a, NULL, 0), 0);
    CHECK_EQ(pirn_read_full(p.a, &c, 0), 0);
    CHECK_EQ(pirn_write_all(p.a, &c, 0), 0);
    CHECK_EQ(pirn_close(p.b), 0);
    CHECK_EQ(pirn_close(p.a), 0);
    CHECK_EQ(pirn_read(p.a, &c, 0), -EBADF);
    int udp = pirn_listen("udp4", "127.0.0.1:0");
    addr_of(udp, addr, sizeof addr);
    int to = pirn_dial("udp4", addr);
    CHECK_EQ(pirn_write(to, "", 0), 0);
    CHECK_EQ(pirn_write(to, "abc", 3), 3);
    CHECK_EQ(pirn_recvfrom(udp, &c, 1, 0, NULL, NULL), 0);
    CHECK_EQ(pirn_recvfrom(udp, &c, 0, 0, NULL, NULL), 0); /* consumes one */
    CHECK_EQ(pirn_recvfrom(udp, &c, 1, MSG_DONTWAIT, NULL, NULL), -EAGAIN);
    CHECK_EQ(pirn_close(udp), 0);
    CHECK_EQ(pirn_close(to), 0);
}

/* --- much data: TCPBig, writev ------------------------------------------------------------------------------------ */

static unsigned char at(size_t i)
{
    return (unsigned char)(i * 31 + i / 251);
}

static void receive_all(int fd, size_t total)
{
    unsigned char *buf = malloc(100000);
    size_t got = 0;
    while (got < total) {
        ssize_t n = pirn_read(fd, buf, 1 + got % 99999);
        CHECK_GT(n, 0);
        for (ssize_t i = 0; i < n; i++) {
            CHECK_EQ(buf[i], at(got + (size_t)i));
        }
        got += (size_t)n;
    }
    CHECK_EQ(pirn_read(fd, buf, 1), 0);
    free(buf);
}

TEST_RUN_ATTR(big_write, PROCS)
{
    size_t total = 8 << 20;
    unsigned char *data = malloc(total);
    for (size_t i = 0; i < total; i++) {
        data[i] = at(i);
    }
    struct pair p = tcp_pair();
    pirn_wg wg = {0};
    pirn_wg_go(&wg, receive_all, p.b, total);
    CHECK_EQ(pirn_write(p.a, data, total), total);
    CHECK_EQ(pirn_shutdown(p.a, SHUT_WR), 0);
    pirn_wg_wait(&wg);
    close_pair(p);
    /* in parts of all sizes, more than are written at a time */
    enum { PARTS = 900 };
    struct iovec *iov = malloc(PARTS * sizeof *iov);
    size_t k = 0;
    for (size_t i = 0; i < PARTS; i++) {
        iov[i].iov_base = data + k;
        iov[i].iov_len = i == PARTS - 1 ? total - k : i * 19 % 15000;
        k += iov[i].iov_len;
    }
    p = tcp_pair();
    pirn_wg_go(&wg, receive_all, p.b, total);
    CHECK_EQ(pirn_writev(p.a, iov, PARTS), total);
    CHECK_EQ(pirn_shutdown(p.a, SHUT_WR), 0);
    pirn_wg_wait(&wg);
    close_pair(p);
    free(iov);
    free(data);
}

/* More than the kernel takes at a time, and than an int has room for: /dev/null looks at nothing of it. */
TEST_RUN(huge_write)
{
    if (test_on_valgrind())
        SKIP("valgrind looks at each of 15 GB");
    size_t total = ((size_t)5 << 30) + 7;
    char *data = mmap(NULL, total, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        SKIP("no room for 5 GB of addresses");
    }
    struct iovec iov[3] = {{data, 3}, {data + 3, total - 10}, {data + total - 7, 7}};
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(pirn_write(fd, data, total), total);
    CHECK_EQ(pirn_write_all(fd, data, total), total);
    CHECK_EQ(pirn_writev(fd, iov, 3), total);
    CHECK_EQ(pirn_close(fd), 0);
    CHECK_EQ(munmap(data, total), 0);
}

/* --- addresses of the other side ---------------------------------------------------------------- */

static bool has_ipv6(void)
{
    int fd = pirn_listen("udp6", "[::1]:0");
    if (fd >= 0)
        CHECK_EQ(pirn_close(fd), 0);
    return fd >= 0;
}

static void name_of(int fd, struct sockaddr_storage *addr, socklen_t *len)
{
    *len = sizeof *addr;
    memset(addr, 0, sizeof *addr);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)addr, len), 0);
}

/* Who throws is who is answered. */
static void throws_to(const char *net, int from, int to)
{
    struct sockaddr_storage mine, other, seen;
    socklen_t mine_len, other_len, len = sizeof seen;
    char text[8] = "";
    name_of(from, &mine, &mine_len);
    name_of(to, &other, &other_len);
    memset(&seen, 0, sizeof seen);
    CHECK_EQ(pirn_sendto(from, net, 4, 0, (struct sockaddr *)&other, other_len), 4);
    CHECK_EQ(pirn_recvfrom(to, text, sizeof text, 0, (struct sockaddr *)&seen, &len), 4);
    CHECK_EQ(memcmp(text, net, 4), 0);
    CHECK_EQ(len, mine_len);
    CHECK_EQ(memcmp(&seen, &mine, len), 0);
}

static void datagrams_with_addresses(const char *net, const char *at)
{
    int a = pirn_listen(net, at), b = pirn_listen(net, at);
    CHECK_GE(a, 0);
    CHECK_GE(b, 0);
    for (int i = 0; i < 20; i++) {
        throws_to(net, a, b);
        throws_to(net, b, a);
    }
    CHECK_EQ(pirn_close(a), 0);
    CHECK_EQ(pirn_close(b), 0);
}

/* accept says who has come, and bytes go both ways. */
static void accepts_with_address(const char *net, const char *at)
{
    char addr[128], text[8];
    int listener = pirn_listen(net, at);
    CHECK_GE(listener, 0);
    addr_of(listener, addr, sizeof addr);
    for (int i = 0; i < 10; i++) {
        struct sockaddr_storage mine, seen;
        socklen_t mine_len, len = sizeof seen;
        int a = pirn_dial(net, addr);
        CHECK_GE(a, 0);
        memset(&seen, 0, sizeof seen);
        int b = pirn_accept(listener, (struct sockaddr *)&seen, &len);
        CHECK_GE(b, 0);
        name_of(a, &mine, &mine_len);
        CHECK_EQ(len, mine_len);
        CHECK_EQ(memcmp(&seen, &mine, len), 0);
        CHECK_EQ(pirn_write(a, "there", 5), 5);
        CHECK_EQ(pirn_read_full(b, text, 5), 5);
        CHECK_EQ(pirn_write(b, text, 5), 5);
        CHECK_EQ(pirn_read_full(a, text, 5), 5);
        CHECK_EQ(memcmp(text, "there", 5), 0);
        CHECK_EQ(pirn_close(a), 0);
        CHECK_EQ(pirn_close(b), 0);
    }
    CHECK_EQ(pirn_close(listener), 0);
}

TEST_RUN_ATTR(addresses_of_ipv4, PROCS)
{
    datagrams_with_addresses("udp4", "127.0.0.1:0");
    accepts_with_address("tcp4", "127.0.0.1:0");
}

TEST_RUN_ATTR(addresses_of_ipv6, PROCS)
{
    if (!has_ipv6())
        SKIP("there is no ::1 here");
    datagrams_with_addresses("udp6", "[::1]:0");
    accepts_with_address("tcp6", "[::1]:0");
}

/* --- messages ------------------------------------------------------------------------------------ */

TEST_RUN_ATTR(messages, PROCS)
{
    struct pair p = tcp_pair();
    char a[3], b[5], text[] = "12345678";
    struct iovec out[2] = {{text, 3}, {text + 3, 5}}, into[2] = {{a, 3}, {b, 5}};
    struct msghdr to = {.msg_iov = out, .msg_iovlen = 2}, from = {.msg_iov = into, .msg_iovlen = 2};
    CHECK_EQ(pirn_sendmsg(p.a, &to, 0), 8);
    CHECK_EQ(pirn_recvmsg(p.b, &from, 0), 8);
    CHECK(memcmp(a, "123", 3) == 0 && memcmp(b, "45678", 5) == 0);
    CHECK_EQ(pirn_sendto(p.a, text, 8, 0, NULL, 0), 8);
    CHECK_EQ(pirn_recvfrom(p.b, a, 3, MSG_PEEK, NULL, NULL), 3);
    CHECK_EQ(pirn_recvfrom(p.b, a, 3, 0, NULL, NULL), 3);
    CHECK_EQ(pirn_readv(p.b, into, 2), 5);
    CHECK_EQ(pirn_recvfrom(p.b, a, 3, MSG_DONTWAIT, NULL, NULL), -EAGAIN);
    close_pair(p);
}

/* --- many who wait for one descriptor: TCPConcurrentAccept ---------------------------------------------------------- */

static void accept_one(int listener, atomic_int *served)
{
    int fd = pirn_accept(listener, NULL, NULL);
    CHECK_GE(fd, 0);
    atomic_fetch_add(served, 1);
    CHECK_EQ(pirn_close(fd), 0);
}

static void dial_one(const char *addr)
{
    char c;
    int fd = pirn_dial("tcp", addr);
    CHECK_GE(fd, 0);
    CHECK_EQ(pirn_read(fd, &c, 1), 0);
    CHECK_EQ(pirn_close(fd), 0);
}

TEST_RUN_ATTR(many_accept, PROCS)
{
    enum { N = 50 };
    char addr[64];
    atomic_int served = 0;
    pirn_wg wg = {0};
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    addr_of(listener, addr, sizeof addr);
    for (int i = 0; i < N; i++) {
        pirn_wg_go(&wg, accept_one, listener, &served);
    }
    let_wait();
    for (int i = 0; i < N; i++) {
        pirn_wg_go(&wg, dial_one, (const char *)addr);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(served, N);
    CHECK_EQ(pirn_close(listener), 0);
}

/* Many readers, few bytes at a time, one edge: each byte is read, by somebody. */
static void take_bytes(int fd, atomic_int *left)
{
    char c;
    while (pirn_read(fd, &c, 1) == 1) {
        atomic_fetch_sub(left, 1);
    }
}

TEST_RUN_ATTR(many_read, PROCS)
{
    enum { READERS = 10, BYTES = 500 };
    static char data[BYTES];
    for (int kind = 0; kind < 2; kind++) {
        struct pair p = tcp_pair();
        int fd[2] = {p.b, p.a};
        if (kind) { /* not pirn's: registered anew for each wait */
            CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        }
        atomic_int left = 2 * BYTES;
        pirn_wg wg = {0};
        for (int i = 0; i < READERS; i++) {
            pirn_wg_go(&wg, take_bytes, fd[0], &left);
        }
        let_wait();
        CHECK_EQ(pirn_write(fd[1], data, BYTES), BYTES);
        for (int i = 0; i < BYTES; i++) {
            CHECK_EQ(pirn_write(fd[1], data, 1), 1);
        }
        CHECK_EQ(kind ? pirn_close(fd[1]) : pirn_shutdown(fd[1], SHUT_WR), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(left, 0);
        if (kind) {
            CHECK_EQ(pirn_close(fd[0]), 0);
        }
        close_pair(p);
    }
}

/* --- rule R6: the short-read hint --------------------------------------------------------------------------------- */

/* Random lengths, in random pieces: hazard 44. */
static void send_randomly(int fd, int total)
{
    unsigned seed = 7;
    for (int sent = 0; sent < total;) {
        int n = 1 + (int)((seed = seed * 1103515245 + 12345) >> 16) % 700;
        n = n > total - sent ? total - sent : n;
        unsigned char buf[700];
        for (int i = 0; i < n; i++) {
            buf[i] = at((size_t)(sent + i));
        }
        CHECK_EQ(pirn_write(fd, buf, (size_t)n), n);
        sent += n;
        if (seed >> 20 & 1) {
            pirn_yield();
        }
    }
    CHECK_EQ(pirn_shutdown(fd, SHUT_WR), 0);
}

TEST_RUN_ATTR(random_short_reads, PROCS)
{
    enum { TOTAL = 200000 };
    unsigned char buf[1024];
    struct pair p = tcp_pair();
    pirn_wg wg = {0};
    pirn_wg_go(&wg, send_randomly, p.a, (int)TOTAL);
    int got = 0;
    for (ssize_t n; (n = pirn_read(p.b, buf, 1 + (size_t)got % 1000)) > 0; got += (int)n) {
        for (ssize_t i = 0; i < n; i++) {
            CHECK_EQ(buf[i], at((size_t)(got + i)));
        }
    }
    CHECK_EQ(got, TOTAL);
    pirn_wg_wait(&wg);
    close_pair(p);
}

/* What is only looked at is still there, though less came than was asked for. */
static void wait_to_read(int fd)
{
    CHECK_EQ(pirn_fd_wait(fd, PIRN_IN, PIRN_NEVER), PIRN_IN);
}

TEST_RUN_ATTR(peek, PROCS)
{
    for (int i = 0; i < 20; i++) {
        char buf[64];
        struct iovec iov = {buf, sizeof buf};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
        struct pair p = tcp_pair();
        pirn_wg wg = {0};
        pirn_wg_go(&wg, wait_to_read, p.b);
        let_wait();
        CHECK_EQ(pirn_write(p.a, "data", 4), 4);
        pirn_wg_wait(&wg); /* the edge has been seen */
        CHECK_EQ(i % 4 < 2 ? pirn_recvfrom(p.b, buf, sizeof buf, MSG_PEEK, NULL, NULL)
                           : pirn_recvmsg(p.b, &msg, MSG_PEEK),
                 4);
        CHECK_EQ(pirn_read(p.b, buf, sizeof buf), 4);
        close_pair(p);
    }
}

/* The end right behind the data: one edge for both. */
TEST_RUN_ATTR(end_behind_data, PROCS)
{
    for (int i = 0; i < 30; i++) {
        char buf[64];
        struct pair p = tcp_pair();
        CHECK_EQ(pirn_fd_deadline(p.b, pirn_now() + 10 * PIRN_US, 0), 0);
        CHECK_EQ(pirn_read(p.b, buf, sizeof buf), -ETIMEDOUT); /* registered */
        CHECK_EQ(pirn_fd_deadline(p.b, 0, 0), 0);
        CHECK_EQ(pirn_write(p.a, "data", 4), 4);
        CHECK_EQ(pirn_shutdown(p.a, SHUT_WR), 0);
        if (i % 2) {
            pirn_sleep(100 * PIRN_US);
        }
        CHECK_EQ(pirn_read(p.b, buf, sizeof buf), 4);
        CHECK_EQ(pirn_read(p.b, buf, sizeof buf), 0);
        close_pair(p);
    }
}

/* A read stops at urgent data, with more behind it. */
TEST_RUN_ATTR(urgent, PROCS)
{
    for (int i = 0; i < 20; i++) {
        char buf[64];
        struct pair p = tcp_pair();
        CHECK_EQ(pirn_fd_deadline(p.b, pirn_now() + 10 * PIRN_US, 0), 0);
        CHECK_EQ(pirn_read(p.b, buf, sizeof buf), -ETIMEDOUT);
        CHECK_EQ(pirn_fd_deadline(p.b, 0, 0), 0);
        CHECK_EQ(pirn_write(p.a, "before", 6), 6);
        CHECK_EQ(pirn_sendto(p.a, "!", 1, MSG_OOB, NULL, 0), 1);
        CHECK_EQ(pirn_write(p.a, "after", 5), 5);
        CHECK_EQ(pirn_shutdown(p.a, SHUT_WR), 0);
        size_t got = 0;
        for (ssize_t n; (n = pirn_read(p.b, buf + got, sizeof buf - got)) > 0;) {
            got += (size_t)n;
        }
        CHECK_EQ(got, 11);
        close_pair(p);
    }
}

/*
 * SO_RCVLOWAT makes the kernel silent about less than that. What is there before a read is read; a read that
 * waits goes on with as much as was asked for, or at the end.
 */
TEST_RUN_ATTR(low_water, PROCS)
{
    for (int i = 0; i < 20; i++) {
        char buf[64];
        int low = 8;
        struct pair p = tcp_pair();
        CHECK_EQ(pirn_write(p.a, "one", 3), 3);
        CHECK_EQ(pirn_read(p.b, buf, sizeof buf), 3);
        CHECK_EQ(setsockopt(p.b, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low), 0);
        CHECK_EQ(pirn_write(p.a, "few", 3), 3);
        if (i % 2) {
            CHECK_EQ(pirn_fd_deadline(p.b, pirn_now() + 10 * PIRN_US, 0), 0);
            pirn_read(p.b, buf, sizeof buf); /* has it, or waits in vain */
            CHECK_EQ(pirn_fd_deadline(p.b, 0, 0), 0);
        }
        CHECK_EQ(pirn_write(p.a, "and more", 8), 8);
        ssize_t n = pirn_read(p.b, buf, sizeof buf);
        CHECK(n >= 8 && n <= 11);
        CHECK_EQ(pirn_write(p.a, "rest", 4), 4);
        CHECK_EQ(pirn_shutdown(p.a, SHUT_WR), 0);
        CHECK_EQ(pirn_read(p.b, buf, sizeof buf), 4);
        CHECK_EQ(pirn_read(p.b, buf, sizeof buf), 0);
        close_pair(p);
    }
}

/* A Unix socket may give less than is there, since descriptors came with it. */
static void send_fd(int over, int fd)
{
    char c = 'f';
    struct iovec iov = {&c, 1};
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    control.h = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(&control.h), &fd, sizeof fd);
    CHECK_EQ(pirn_sendmsg(over, &msg, 0), 1);
}

TEST_RUN_ATTR(descriptors_in_between, PROCS)
{
    for (int i = 0; i < 20; i++) {
        int s[2];
        char buf[16];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s), 0);
        CHECK_EQ(pirn_fd_adopt(s[0]), 0);
        CHECK_EQ(pirn_fd_wait(s[0], PIRN_IN, pirn_now() + 10 * PIRN_US), -ETIMEDOUT);
        for (int k = 0; k < 3; k++) {
            send_fd(s[1], s[1]);
            CHECK_EQ(pirn_write(s[1], "xy", 2), 2);
        }
        size_t got = 0;
        while (got < 9) {
            ssize_t n = pirn_read(s[0], buf + got, sizeof buf - got);
            CHECK_GT(n, 0);
            got += (size_t)n;
        }
        CHECK_EQ(pirn_close(s[0]), 0);
        CHECK_EQ(pirn_close(s[1]), 0);
    }
}

/* --- level-triggered waits beside operations ------------------------------------------------------------------------ */

TEST_RUN_ATTR(watching_takes_nothing, PROCS)
{
    char c;
    struct pair p = tcp_pair();
    CHECK_EQ(pirn_fd_wait(p.b, PIRN_IN | PIRN_OUT, PIRN_NEVER), PIRN_OUT);
    CHECK_EQ(pirn_write(p.a, "xy", 2), 2);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pirn_fd_wait(p.b, PIRN_IN, PIRN_NEVER), PIRN_IN);
        CHECK_EQ(pirn_select(PIRN_READABLE(p.b)), 0);
    }
    CHECK_EQ(pirn_read(p.b, &c, 1), 1); /* the edge is gone, one byte is left */
    CHECK_EQ(pirn_select(PIRN_READABLE(p.b)), 0);
    CHECK_EQ(pirn_fd_wait(p.b, PIRN_IN, PIRN_NEVER), PIRN_IN);
    CHECK_EQ(pirn_read(p.b, &c, 1), 1);
    CHECK_EQ(pirn_fd_wait(p.b, PIRN_IN, pirn_now() + PIRN_MS), -ETIMEDOUT);
    close_pair(p);
}

/* --- what a connection costs that nothing comes on ------------------------------------------------------------------ */

static long resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    CHECK(f != NULL);
    CHECK_EQ(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static atomic_int begun;

static void wait_for_the_end(int fd)
{
    char c;
    atomic_fetch_add(&begun, 1);
    CHECK_EQ(pirn_read(fd, &c, 1), -EBADF);
}

/* At most 6 KB: its goroutine, and what pirn knows of the descriptor. */
TEST_RUN_ATTR(idle_connections, PROCS)
{
    enum { N = 2000 };
    static int fds[N][2];
    struct rlimit old, all;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    all = old;
    all.rlim_cur = all.rlim_max;
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN || test_on_valgrind() || PIRN_SMALL
        || all.rlim_max < 2 * N + 100) {
        SKIP("not as it is used, or too few descriptors");
    }
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &all), 0);
    pirn_wg wg = {0};
    for (int i = 0; i < N; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds[i]), 0);
        CHECK_EQ(pirn_fd_adopt(fds[i][0]), 0);
    }
    long before = resident();
    for (int i = 0; i < N; i++) {
        pirn_wg_go(&wg, wait_for_the_end, fds[i][0]);
    }
    while (atomic_load(&begun) < N) {
        let_wait();
    }
    let_wait();
    long each = (resident() - before) / N;
    CHECK(each > 1024 && each <= 6 * 1024);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(pirn_close(fds[i][0]), 0);
        CHECK_EQ(close(fds[i][1]), 0);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
}
