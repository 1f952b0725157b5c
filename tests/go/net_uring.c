/* SPDX-License-Identifier: MIT */
/*
 * io_uring in place of the pollers: that it is, where it can be, and that it keeps no file which the
 * program has done with. `tests/check.py uring` runs the other tests of descriptors with it too.
 */
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net.h"

#define PROCS .procs = "1,2,4,16"

static const pirn_config ring = {.io = PIRN_IO_URING};

static int open_of_kind(const char *kind)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir));) {
        char to[64] = "";
        n += readlinkat(dirfd(dir), e->d_name, to, sizeof to - 1) > 0 && strcmp(to, kind) == 0;
    }
    closedir(dir);
    return n;
}

/* What the kernel and the build allow. */
static bool ring_is_possible(void)
{
    char params[256] = {0};
    long fd =
        PIRN_HAVE_LIBURING && !test_on_valgrind() ? syscall(SYS_io_uring_setup, 4, params) : -1;
    if (fd >= 0) {
        close((int)fd);
    }
    return fd >= 0;
}

static void reads(int fd, atomic_int *got)
{
    char c;
    atomic_store(got, (int)pirn_read(fd, &c, 1));
}

/* --- which of the two ------------------------------------------------------------------------------------- */

static int look_while_it_waits(void *arg)
{
    bool by_ring = *(bool *)arg;
    struct pair p = tcp_pair();
    atomic_int got = 0;
    pirn_wg wg = {0};
    pirn_wg_go(&wg, reads, p.a, &got);
    let_wait();
    CHECK_EQ(open_of_kind("anon_inode:[io_uring]") > 0, by_ring);
    CHECK_EQ(open_of_kind("anon_inode:[eventpoll]") > 0, !by_ring);
    CHECK_EQ(pirn_write(p.b, "x", 1), 1);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&got), 1);
    close_pair(p);
    return 0;
}

TEST_ATTR(is_used, PROCS)
{
    bool possible = ring_is_possible(), no = false;
    CHECK_EQ(pirn_run_config(&ring, look_while_it_waits, &possible), 0);
    CHECK_EQ(pirn_run_config(&(pirn_config){.io = PIRN_IO_EPOLL}, look_while_it_waits, &no), 0);
    CHECK_EQ(pirn_run(look_while_it_waits, &no), 0);
}

/* --- it lets go ------------------------------------------------------------------------------------------- */

static void peer_is_told(int writer)
{
    CHECK_EQ(write(writer, "x", 1), -1);
    CHECK_EQ(errno, EPIPE);
    close(writer);
}

/* A pipe whose reading end is waited for, closed in one way or another: who writes is told at once. */
static int pipes(void *arg)
{
    (void)arg;
    char c;
    for (int i = 0; i < 40; i++) {
        int fd[2];
        atomic_int got = 0;
        pirn_wg wg = {0};
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        if (i % 2) {
            CHECK_EQ(pirn_fd_adopt(fd[0]), 0);
        }
        switch (i / 2 % 4) {
        case 0: /* while a reader waits */
            pirn_wg_go(&wg, reads, fd[0], &got);
            let_wait();
            CHECK_EQ(pirn_close(fd[0]), 0);
            pirn_wg_wait(&wg);
            CHECK_EQ(atomic_load(&got), -EBADF);
            break;
        case 1: /* after one that has given up */
            CHECK_EQ(pirn_fd_deadline(fd[0], pirn_now() + PIRN_MS / 2, 0), 0);
            CHECK_EQ(pirn_read(fd[0], &c, 1), -ETIMEDOUT);
            CHECK_EQ(i % 2 ? pirn_close(fd[0]) : close(fd[0]), 0);
            break;
        case 2: /* after a select that another case has won */
            CHECK_EQ(pirn_select(PIRN_READABLE(fd[0]), PIRN_AFTER(PIRN_MS / 2)), 1);
            CHECK_EQ(i % 2 ? pirn_close(fd[0]) : close(fd[0]), 0);
            break;
        case 3: /* after one that has read */
            pirn_wg_go(&wg, reads, fd[0], &got);
            let_wait();
            CHECK_EQ(write(fd[1], "x", 1), 1);
            pirn_wg_wait(&wg);
            CHECK_EQ(atomic_load(&got), 1);
            CHECK_EQ(i % 2 ? pirn_close(fd[0]) : close(fd[0]), 0);
            break;
        }
        peer_is_told(fd[1]);
    }
    return 0;
}

TEST_ATTR(lets_go_of_pipes, PROCS)
{
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(pirn_run_config(&ring, pipes, NULL), 0);
}

static void accepts(int fd, atomic_int *got)
{
    atomic_store(got, pirn_accept(fd, NULL, NULL));
}

/* The address of a listener is free when the call that closes it, or the last that uses it, returns. */
static int listeners(void *arg)
{
    (void)arg;
    char addr[64];
    int fd = pirn_listen("tcp", "127.0.0.1:0");
    addr_of(fd, addr, sizeof addr);
    for (int i = 0; i < 20; i++) {
        atomic_int got = 0;
        pirn_wg wg = {0};
        pirn_wg_go(&wg, accepts, fd, &got);
        let_wait();
        CHECK_EQ(pirn_close(fd), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&got), -EBADF);
        CHECK_EQ(pirn_dial("tcp", addr), -ECONNREFUSED);
        fd = pirn_listen("tcp", addr);
        CHECK_GE(fd, 0);
    }
    CHECK_EQ(pirn_close(fd), 0);
    return 0;
}

TEST_ATTR(lets_go_of_listeners, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, listeners, NULL), 0);
}

/* One leaves a descriptor that is not pirn's, and others come at the same time: nobody is forgotten. */
static void comes_and_goes(int fd, int n, atomic_int *taken)
{
    char c;
    for (int i = 0; i < n; i++) {
        int r = pirn_fd_wait(fd, PIRN_IN, pirn_now() + (i % 3) * 50 * PIRN_US);
        CHECK(r == PIRN_IN || r == -ETIMEDOUT);
        if (i % 4 == 0) {
            CHECK_EQ(pirn_read(fd, &c, 1), 1);
            atomic_fetch_add(taken, 1);
        }
    }
}

static int come_and_go(void *arg)
{
    (void)arg;
    enum { READERS = 4, ROUNDS = 40 };
    int fd[2];
    atomic_int taken = 0;
    pirn_wg wg = {0};
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    for (int i = 0; i < READERS; i++) {
        pirn_wg_go(&wg, comes_and_goes, fd[0], (int)ROUNDS, &taken);
    }
    for (int i = 0; i < READERS * ROUNDS / 4; i++) {
        pirn_sleep(30 * PIRN_US);
        CHECK_EQ(pirn_write(fd[1], "x", 1), 1);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&taken), READERS * ROUNDS / 4);
    CHECK_EQ(pirn_close(fd[0]), 0);
    peer_is_told(fd[1]);
    return 0;
}

TEST_ATTR(come_and_go, PROCS)
{
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(pirn_run_config(&ring, come_and_go, NULL), 0);
}

/* --- the end of the runtime --------------------------------------------------------------------------------- */

static int leave_them_waiting(void *arg)
{
    struct pair *p = arg;
    static atomic_int got;
    *p = tcp_pair();
    for (int i = 0; i < 3; i++) {
        pirn_go(reads, p->a, &got);
        pirn_go(reads, p->b, &got);
    }
    let_wait();
    return pirn_close(p->b);
}

/* Nothing of the ring is left, and what the program has not closed is the program's. */
TEST_ATTR(dropped_at_the_end, PROCS)
{
    for (int i = 0; i < 10; i++) {
        struct pair p;
        CHECK_EQ(pirn_run_config(&ring, leave_them_waiting, &p), 0);
        CHECK_EQ(open_of_kind("anon_inode:[io_uring]"), 0);
        char c;
        CHECK_EQ(read(p.a, &c, 1), 0); /* the other end is closed, so nobody holds it */
        CHECK_EQ(close(p.a), 0);
        CHECK_EQ(close(p.b), -1);
    }
}

/* --- ready, but nothing to read --------------------------------------------------------------------------- */

/* Something is in the queue of errors, for which poll() says POLLERR all the time: who reads waits all the same. */
static int wait_with_an_error_queued(void *arg)
{
    (void)arg;
    int on = 1;
    char c;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int closed = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(closed, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(getsockname(closed, (struct sockaddr *)&at, &len), 0);
    CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(close(closed), 0);
    CHECK_EQ(send(fd, "x", 1, 0), 1);
    CHECK_EQ(pirn_read(fd, &c, 1), -ECONNREFUSED);
    CHECK_EQ(pirn_fd_deadline(fd, pirn_now() + 200 * PIRN_MS, 0), 0);
    long before = test_cpu_us();
    CHECK_EQ(pirn_read(fd, &c, 1), -ETIMEDOUT);
    CHECK_LT(test_cpu_us() - before, TEST_TSAN || TEST_ASAN ? 100000 : 60000);
    CHECK_EQ(pirn_close(fd), 0);
    return 0;
}

TEST_ATTR(error_queue, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, wait_with_an_error_queued, NULL), 0);
    CHECK_EQ(pirn_run(wait_with_an_error_queued, NULL), 0);
}

/* --- what came late ----------------------------------------------------------------------------------------- */

/* What was read before the wait began is no news to it, though the ring tells of it only now. */
static int watch_after_the_read(void *arg)
{
    (void)arg;
    int fd[2];
    char c;
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(pirn_fd_adopt(fd[0]), 0);
    for (int i = 0; i < 300; i++) {
        CHECK_EQ(write(fd[1], "x", 1), 1);
        CHECK_EQ(pirn_read(fd[0], &c, 1), 1);
        if (i % 2) {
            CHECK_EQ(pirn_fd_wait(fd[0], PIRN_IN, pirn_now() + 50 * PIRN_US), -ETIMEDOUT);
        } else {
            int chosen = pirn_select(PIRN_READABLE(fd[0]), PIRN_AFTER(50 * PIRN_US));
            CHECK_EQ(chosen, 1);
        }
    }
    CHECK_EQ(pirn_close(fd[0]), 0);
    CHECK_EQ(pirn_close(fd[1]), 0);
    return 0;
}

TEST_ATTR(no_stale_readiness, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, watch_after_the_read, NULL), 0);
    CHECK_EQ(pirn_run(watch_after_the_read, NULL), 0);
}
