/* SPDX-License-Identifier: MIT */
/* Closing while others wait, the end of a connection, and numbers that are used again. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net.h"

#define PROCS .procs = "1,2,4,16"

/* --- close wakes all who wait: TestCloseUnblocksRead, ClosingListener, ... -------------------------------- */

static void read_gives(int fd, ssize_t expected)
{
    char c;
    CHECK_EQ(pirn_read(fd, &c, 1), expected);
}

static void accept_gives(int fd, int expected)
{
    CHECK_EQ(pirn_accept(fd, NULL, NULL), expected);
}

static void wait_gives(int fd, int events, int expected)
{
    CHECK_EQ(pirn_fd_wait(fd, events, PIRN_NEVER), expected);
}

static void fill(int fd)
{
    static char much[1 << 16];
    ssize_t r;
    while ((r = pirn_write(fd, much, sizeof much)) > 0) {
    }
    CHECK_EQ(r, -EBADF);
}

static void select_is_woken(int fd)
{
    pirn_chan(int) never = NULL;
    CHECK_EQ(pirn_select(PIRN_RECV(never, NULL), PIRN_READABLE(fd)), 1);
}

TEST_RUN_ATTR(wakes_all, PROCS)
{
    for (int i = 0; i < 10; i++) {
        struct pair p = tcp_pair();
        pirn_wg wg = {0};
        for (int k = 0; k < 3; k++) {
            pirn_wg_go(&wg, read_gives, p.a, (ssize_t)-EBADF);
        }
        pirn_wg_go(&wg, wait_gives, p.a, (int)PIRN_IN, -EBADF);
        pirn_wg_go(&wg, select_is_woken, p.a);
        pirn_wg_go(&wg, fill, p.a);
        let_wait();
        CHECK_EQ(pirn_close(p.a), 0);
        pirn_wg_wait(&wg);
        read_gives(p.a, -EBADF);
        CHECK_EQ(pirn_close(p.a), -EBADF);
        CHECK_EQ(pirn_close(p.b), 0);
    }
}

TEST_RUN_ATTR(wakes_accept_and_udp, PROCS)
{
    char addr[64];
    for (int i = 0; i < 10; i++) {
        pirn_wg wg = {0};
        int listener = pirn_listen("tcp", i ? addr : "127.0.0.1:0"); /* usable again at once */
        int udp = pirn_listen("udp", "127.0.0.1:0");
        CHECK_GE(listener, 0);
        addr_of(listener, addr, sizeof addr);
        pirn_wg_go(&wg, accept_gives, listener, -EBADF);
        pirn_wg_go(&wg, accept_gives, listener, -EBADF);
        pirn_wg_go(&wg, read_gives, udp, (ssize_t)-EBADF);
        if (i % 2) {
            let_wait();
        }
        CHECK_EQ(pirn_close(listener), 0);
        CHECK_EQ(pirn_close(udp), 0);
        pirn_wg_wait(&wg);
    }
}

/* TestClosedPipeRaceRead, CloseWithBlockingRead: pipes of the program's own, whatever their flags. */
TEST_RUN_ATTR(wakes_pipe, PROCS)
{
    for (int i = 0; i < 10; i++) {
        int fd[2], full[2];
        pirn_wg wg = {0};
        CHECK_EQ(pipe2(fd, O_CLOEXEC | (i % 2 ? O_NONBLOCK : 0)), 0);
        CHECK_EQ(pipe2(full, O_CLOEXEC | (i % 2 ? O_NONBLOCK : 0)), 0);
        pirn_wg_go(&wg, read_gives, fd[0], (ssize_t)-EBADF);
        pirn_wg_go(&wg, fill, full[1]);
        let_wait();
        CHECK_EQ(pirn_close(full[1]), 0);
        CHECK_EQ(pirn_close(fd[0]), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(pirn_close(full[0]), 0);
        CHECK_EQ(pirn_close(fd[1]), 0);
    }
}

/* --- the number is freed with the last call that uses it --------------------------------------------------- */

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* On one P the readers get to run only when goroutine 1 waits. (It may be preempted: then they have.) */
TEST_RUN_ATTR(number_is_kept, .procs = "1")
{
    int kept = 0;
    for (int i = 0; i < 20; i++) {
        int fd[2];
        pirn_wg wg = {0};
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        pirn_wg_go(&wg, read_gives, fd[0], (ssize_t)-EBADF);
        pirn_wg_go(&wg, read_gives, fd[0], (ssize_t)-EBADF);
        pirn_wg_go(&wg, select_is_woken, fd[0]);
        let_wait();
        CHECK_EQ(pirn_close(fd[0]), 0);
        kept += is_open(fd[0]);
        CHECK_EQ(pirn_read(fd[0], &i, 1), -EBADF); /* but not for those who come now */
        pirn_wg_wait(&wg);
        CHECK(!is_open(fd[0]));
        CHECK_EQ(pirn_close(fd[1]), 0);
    }
    CHECK_GT(kept, 0);
}

/* Rule R6: a descriptor whose dup lives on still gives events to the poller: they must not reach the next
 * owner of the number. */
TEST_RUN_ATTR(ghost, PROCS)
{
    for (int i = 0; i < 20; i++) {
        struct pair p = tcp_pair();
        pirn_wg wg = {0};
        pirn_wg_go(&wg, read_gives, p.a, (ssize_t)-EBADF);
        let_wait();
        int ghost = dup(p.a);
        CHECK_EQ(pirn_close(p.a), 0);
        pirn_wg_wait(&wg);
        int fresh = listen_udp_as(p.a, i % 2);
        CHECK_EQ(pirn_write(p.b, "x", 1), 1);
        CHECK_EQ(pirn_fd_wait(fresh, PIRN_IN, pirn_now() + PIRN_MS), -ETIMEDOUT);
        CHECK_EQ(pirn_close(fresh), 0);
        CHECK_EQ(close(ghost), 0);
        CHECK_EQ(pirn_close(p.b), 0);
    }
}

/* Closed behind pirn's back it stays registered, for as long as the dup lives: the generation alone tells. */
TEST_RUN_ATTR(ghost_of_libc, PROCS)
{
    for (int i = 0; i < 20; i++) {
        char c;
        struct pair p = tcp_pair();
        CHECK_EQ(pirn_fd_deadline(p.a, pirn_now() + 10 * PIRN_US, 0), 0);
        CHECK_EQ(pirn_read(p.a, &c, 1), -ETIMEDOUT); /* registered */
        int ghost = fcntl(p.a, F_DUPFD_CLOEXEC, 500);
        CHECK_GE(ghost, 500);
        CHECK_EQ(close(p.a), 0);
        int fresh = pirn_listen("udp", "127.0.0.1:0"), other = -1;
        if (fresh != p.a) { /* it was not the lowest that is free */
            other = fresh;
            fresh = pirn_listen("udp", "127.0.0.1:0");
        }
        pirn_wg wg = {0};
        pirn_wg_go(&wg, wait_gives, fresh, (int)PIRN_IN, -EBADF);
        let_wait();
        CHECK_EQ(pirn_write(p.b, "x", 1), 1);
        let_wait();
        CHECK_EQ(pirn_close(fresh), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(close(ghost), 0);
        CHECK_EQ(pirn_close(p.b), 0);
        if (other >= 0) {
            CHECK_EQ(pirn_close(other), 0);
        }
    }
}

/* One that pirn made, closed behind its back, and its number made anew. */
TEST_RUN_ATTR(closed_by_libc, PROCS)
{
    char c;
    struct pair p = tcp_pair();
    CHECK_EQ(pirn_fd_deadline(p.a, pirn_now() + PIRN_MS, 0), 0);
    CHECK_EQ(pirn_read(p.a, &c, 1), -ETIMEDOUT);
    CHECK_EQ(close(p.a), 0);
    CHECK_EQ(close(p.b), 0);
    struct pair q = tcp_pair();
    pirn_wg wg = {0};
    pirn_wg_go(&wg, read_gives, q.a, (ssize_t)1);
    pirn_wg_go(&wg, read_gives, q.b, (ssize_t)1);
    let_wait();
    CHECK_EQ(pirn_write(q.a, "x", 1), 1);
    CHECK_EQ(pirn_write(q.b, "x", 1), 1);
    pirn_wg_wait(&wg);
    close_pair(q);
}

/* What was said of a number that was closed behind pirn's back does not hold for what pirn opens next. */
static int leave_a_cancelled_number(void)
{
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(pirn_fd_cancel(fd[0]), 0);
    CHECK_EQ(pirn_fd_deadline(fd[0], 1, 1), 0);
    CHECK_EQ(close(fd[0]), 0);
    return fd[1];
}

TEST_RUN_ATTR(cancelled_and_closed_by_libc, PROCS)
{
    char c;
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    for (int i = 0; i < 2; i++) {
        int other = leave_a_cancelled_number();
        pirn_ctx_use(i ? ctx : pirn_ctx_background());
        int fd = pirn_open("/dev/zero", O_RDONLY);
        pirn_ctx_use(pirn_ctx_background());
        CHECK_GE(fd, 0);
        CHECK_EQ(pirn_read(fd, &c, 1), 1);
        CHECK_EQ(pirn_close(fd), 0);
        CHECK_EQ(close(other), 0);
    }
    pirn_ctx_release(ctx);
}

/*
 * What changes a descriptor while another closes it changes that one or none: not a number that nobody has,
 * which the program's next file would be found with.
 */
static atomic_int under_way;

static void change(int fd, int how)
{
    int r;
    do {
        r = how == 0   ? pirn_fd_cancel(fd)
            : how == 1 ? pirn_fd_deadline(fd, 1, 1)
                       : pirn_fd_adopt(fd);
        atomic_store(&under_way, 1);
        pirn_yield();
    } while (!r);
    CHECK_EQ(r, -EBADF);
}

TEST_RUN_ATTR(free_number_is_not_changed, PROCS)
{
    enum { HIGH = 500 }; /* numbers that the runtime does not take */
    int s[2], out[2];
    char c;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
    for (int i = 0; i < (TEST_TSAN || TEST_ASAN ? 90 : 600); i++) {
        pirn_wg wg = {0};
        int fd = fcntl(s[0], F_DUPFD_CLOEXEC, HIGH);
        CHECK_GE(fd, HIGH);
        atomic_store(&under_way, 0);
        pirn_wg_go(&wg, change, fd, i % 3);
        while (!atomic_load(&under_way)) {
            pirn_yield();
        }
        CHECK_EQ(pirn_close(fd), 0);
        pirn_wg_wait(&wg);
        CHECK(!is_open(fd));
        CHECK_EQ(dup2(out[1], fd), fd);
        CHECK_EQ(pirn_write(fd, "x", 1), 1);
        CHECK_EQ(dup2(out[0], fd), fd);
        CHECK_EQ(pirn_read(fd, &c, 1), 1);
        CHECK_EQ(close(fd), 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(close(s[i]), 0);
        CHECK_EQ(close(out[i]), 0);
    }
}

/* --- ends of a connection: CloseRead, CloseWrite, NotTemporaryRead, EPIPE ------------------------------------ */

TEST_RUN_ATTR(half_close, PROCS)
{
    struct pair p = tcp_pair();
    char buf[8];
    CHECK_EQ(pirn_write(p.a, "bye", 3), 3);
    CHECK_EQ(pirn_shutdown(p.a, SHUT_WR), 0);
    CHECK_EQ(pirn_read_full(p.b, buf, sizeof buf), 3);
    CHECK_EQ(pirn_read(p.b, buf, sizeof buf), 0);
    CHECK_EQ(pirn_read(p.b, buf, sizeof buf), 0);
    CHECK_EQ(pirn_write(p.a, "x", 1), -EPIPE); /* and no SIGPIPE */
    CHECK_EQ(pirn_write(p.b, "still", 5), 5);
    CHECK_EQ(pirn_read(p.a, buf, sizeof buf), 5);
    CHECK_EQ(pirn_shutdown(p.b, SHUT_RDWR), 0);
    CHECK_EQ(pirn_read(p.a, buf, sizeof buf), 0);
    close_pair(p);
}

/* Readers that wait see the end, be it their own side that ends it; who writes to them is told later. */
TEST_RUN_ATTR(half_close_wakes, PROCS)
{
    for (int i = 0; i < 12; i++) {
        struct pair p = tcp_pair();
        pirn_wg wg = {0};
        for (int k = 0; k < 3; k++) {
            pirn_wg_go(&wg, read_gives, p.a, (ssize_t)0);
        }
        if (i % 2) {
            let_wait();
        }
        CHECK_EQ(i / 2 % 2 ? pirn_shutdown(p.b, SHUT_WR) : pirn_shutdown(p.a, SHUT_RD), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(pirn_write(p.a, "x", 1), 1); /* the other half is as it was */
        read_gives(p.b, 1);
        close_pair(p);
    }
}

/* --- a close that takes its time: SO_LINGER, and unsent data --------------------------------------------------- */

static void counts(atomic_int *n)
{
    for (;;) {
        atomic_fetch_add(n, 1);
        pirn_sleep(PIRN_MS);
    }
}

static void select_is_last(int fd, atomic_int *over)
{
    pirn_chan(int) never = NULL;
    CHECK_EQ(pirn_select(PIRN_RECV(never, NULL), PIRN_READABLE(fd)), 1);
    atomic_store(over, 1);
}

static void fill_up(int fd)
{
    static char much[1 << 16];
    while (pirn_sendto(fd, much, sizeof much, MSG_DONTWAIT, NULL, 0) > 0) {
    }
}

/* A select is the last who uses it: others run while it closes the connection. */
TEST_RUN_ATTR(a_select_that_lingers, PROCS)
{
    static atomic_int n, over;
    static char buf[1 << 16];
    struct pair p = tcp_pair();
    struct linger long_enough = {1, 10};
    pirn_wg wg = {0};
    CHECK_EQ(setsockopt(p.a, SOL_SOCKET, SO_LINGER, &long_enough, sizeof long_enough), 0);
    fill_up(p.a);
    pirn_go(counts, &n);
    pirn_wg_go(&wg, select_is_last, p.a, &over);
    let_wait();
    CHECK_EQ(pirn_close(p.a), 0);
    int from = atomic_load(&n);
    pirn_ns begin = pirn_now();
    while (atomic_load(&n) < from + 5)
        pirn_sleep(PIRN_MS);
    CHECK_LT(pirn_now() - begin, 5 * PIRN_SEC);
    while (pirn_read(p.b, buf, sizeof buf) > 0) { /* then it need not linger */
    }
    pirn_wg_wait(&wg);
    CHECK(atomic_load(&over));
    CHECK_EQ(pirn_close(p.b), 0);
}

/* What is less than SO_RCVLOWAT is no news; adopting it makes the next read look. */
TEST_RUN_ATTR(adopted_after_rcvlowat, PROCS)
{
    struct pair p = tcp_pair();
    char buf[100];
    int much = 1000;
    CHECK_EQ(pirn_write(p.b, "abc", 3), 3);
    CHECK_EQ(pirn_read(p.a, buf, sizeof buf), 3); /* short: there is no more */
    CHECK_EQ(setsockopt(p.a, SOL_SOCKET, SO_RCVLOWAT, &much, sizeof much), 0);
    CHECK_EQ(pirn_write(p.b, "de", 2), 2);
    let_wait();
    CHECK_EQ(pirn_fd_adopt(p.a), 0);
    CHECK_EQ(pirn_fd_deadline(p.a, pirn_deadline(10 * PIRN_SEC), 0), 0);
    CHECK_EQ(pirn_read(p.a, buf, sizeof buf), 2);
    close_pair(p);
}

static void reset(int fd)
{
    struct linger now = {1, 0};
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    CHECK_EQ(pirn_close(fd), 0);
}

TEST_RUN_ATTR(reset_is_for_good, PROCS)
{
    struct pair p = tcp_pair();
    pirn_wg wg = {0};
    char c;
    pirn_wg_go(&wg, read_gives, p.a, (ssize_t)-ECONNRESET);
    let_wait();
    reset(p.b);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_read(p.a, &c, 1), 0);
    CHECK_EQ(pirn_write(p.a, &c, 1), -EPIPE);
    CHECK_EQ(pirn_writev(p.a, (struct iovec[]){{&c, 1}, {&c, 1}}, 2), -EPIPE);
    CHECK_EQ(pirn_close(p.a), 0);
}

TEST_RUN_ATTR(broken_pipe, PROCS)
{
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(pirn_close(fd[0]), 0);
    CHECK_EQ(pirn_write(fd[1], "x", 1), -EPIPE);
    CHECK_EQ(pirn_write(fd[1], "x", 1), -EPIPE);
    CHECK_EQ(pirn_close(fd[1]), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    CHECK_EQ(pirn_close(fd[0]), 0);
    CHECK_EQ(pirn_write(fd[1], "x", 1), -EPIPE);
    CHECK_EQ(pirn_close(fd[1]), 0);
}

/* On the standard output and error it is as for any program. */
static int write_to_it(void *arg)
{
    while (pirn_write(*(int *)arg, "x", 1) == 1) { /* until the other end is closed */
    }
    return 7;
}

TEST(sigpipe_of_stdout)
{
    for (int std = 1; std <= 2; std++) {
        int fd[2], status;
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
            signal(SIGPIPE, SIG_DFL);
            dup2(fd[1], std);
            close(fd[0]);
            _exit(pirn_run(write_to_it, &std));
        }
        close(fd[0]);
        close(fd[1]);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
    }
}

/* Hazard 43: hung-up sockets that nobody reads cost nothing. */
TEST_RUN_ATTR(no_spin_on_hung_up, PROCS)
{
    enum { N = 100 };
    struct pair p[N];
    char c;
    for (int i = 0; i < N; i++) {
        p[i] = tcp_pair();
        CHECK_EQ(pirn_fd_deadline(p[i].a, 1, 0), 0);
        CHECK_EQ(pirn_read(p[i].a, &c, 1), -ETIMEDOUT);
        CHECK_EQ(pirn_fd_deadline(p[i].a, pirn_now() + 10 * PIRN_US, 0), 0);
        CHECK_EQ(pirn_read(p[i].a, &c, 1), -ETIMEDOUT); /* it is registered now */
        CHECK_EQ(pirn_close(p[i].b), 0);
    }
    struct pair idle = tcp_pair();
    CHECK_EQ(pirn_fd_deadline(idle.a, pirn_now() + 100 * PIRN_MS, 0), 0);
    long before = test_cpu_us();
    CHECK_EQ(pirn_read(idle.a, &c, 1), -ETIMEDOUT);
    CHECK_LT(test_cpu_us() - before, TEST_TSAN || TEST_ASAN ? 50000 : 20000);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(pirn_close(p[i].a), 0);
    }
    close_pair(idle);
}
