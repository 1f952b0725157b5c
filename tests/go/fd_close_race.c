/* SPDX-License-Identifier: MIT */
/*
 * A close that meets other calls on the same descriptor, and many calls on one pair (conformance 138, 141 to 143), on
 * pipes and sockets that the program has made. More of these: close while others wait in net_close.c, sendfile in
 * files_send.c and fd_blocking.c, the pair without a kernel (a channel) in chan.c. Left out of 141: misuse and overflow
 * of the count, since calls count themselves, and each needs a goroutine or thread. Of 143: callbacks, there are none;
 * what must not run after a close are the calls.
 *
 * Numbers are high ones, which the runtime never opens: one that is free stays so.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "go/busy.h"
#include "go/idle.h"
#include "go/net.h"

enum { HIGH = 500, FEW = TEST_TSAN || TEST_ASAN ? 4 : 1 };

static int high(int fd)
{
    int as = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    CHECK_GE(as, HIGH);
    CHECK_EQ(close(fd), 0);
    return as;
}

/* Two ends, the second is the one that writes: a pipe or a pair of sockets, blocking or not, adopted or not. */
static void make_two(int fd[2], int i)
{
    int flags = i % 4 < 2 ? 0 : O_NONBLOCK;
    CHECK_EQ(O_NONBLOCK, SOCK_NONBLOCK);
    if (i % 2)
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, fd), 0);
    else
        CHECK_EQ(pipe2(fd, O_CLOEXEC | flags), 0);
    for (int k = 0; k < 2; k++) {
        fd[k] = high(fd[k]);
        if (i % 8 >= 4)
            CHECK_EQ(pirn_fd_adopt(fd[k]), 0);
    }
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* --- everybody uses it, and several close it: ClosedPipeRaceRead, ...Write, FdRace, the stress of fd_mutex ------- */

static char much[1 << 20];
static atomic_int at_it, closes;

static void reads_on(int fd)
{
    char buf[16];
    ssize_t r;
    atomic_fetch_add(&at_it, 1);
    while ((r = pirn_read(fd, buf, sizeof buf)) > 0) {
    }
    CHECK_EQ(r, -EBADF);
}

static void writes_on(int fd)
{
    ssize_t r;
    atomic_fetch_add(&at_it, 1);
    while ((r = pirn_write(fd, "some text", 9)) > 0) {
    }
    CHECK_EQ(r, -EBADF);
}

static void waits_on(int fd, int events)
{
    int r;
    atomic_fetch_add(&at_it, 1);
    while ((r = pirn_fd_wait(fd, events, PIRN_NEVER)) > 0) {
        CHECK_EQ(r & ~events, 0);
        pirn_yield();
    }
    CHECK_EQ(r, -EBADF);
}

static void sets_deadlines(int fd)
{
    int r;
    atomic_fetch_add(&at_it, 1);
    while ((r = pirn_fd_deadline(fd, pirn_now() + LONG, pirn_now() + LONG)) == 0)
        pirn_yield();
    CHECK_EQ(r, -EBADF);
}

static void closes_it(int fd)
{
    int r = pirn_close(fd);
    CHECK(r == 0 || r == -EBADF);
    atomic_fetch_add(&closes, r == 0);
}

/* They are in the midst of it, or wait for data, room or each other, or have not begun. */
static void is_closed_under(int fd, pirn_wg *users, int i)
{
    if (i % 3)
        YIELD_UNTIL(atomic_load(&at_it) == 5);
    if (i % 3 == 2)
        let_wait();
    for (int k = 0; k < 3; k++)
        pirn_wg_go(users, closes_it, fd);
    pirn_wg_wait(users);
    int done = atomic_exchange(&closes, 0);
    CHECK_EQ(done, 1);
    CHECK(!is_open(fd));
    atomic_store(&at_it, 0);
}

TEST_RUN_ATTR(many_use_it_many_close_it, PROCS, .timeout = 60)
{
    for (int i = 0; i < 48 / FEW; i++) {
        int fd[2];
        pirn_wg users = {0};
        make_two(fd, i);
        for (int k = 0; k < 3; k++)
            pirn_wg_go(&users, writes_on, fd[1]);
        pirn_wg_go(&users, waits_on, fd[1], (int)PIRN_OUT);
        pirn_wg_go(&users, sets_deadlines, fd[1]);
        is_closed_under(fd[1], &users, i);
        while (pirn_read(fd[0], much, sizeof much)
               > 0) { /* PipeEOF: all that was written, and the end */
        }
        CHECK_EQ(pirn_read(fd[0], much, 1), 0);
        CHECK_EQ(pirn_close(fd[0]), 0);

        make_two(fd, i);
        CHECK_EQ(pirn_write(fd[1], "some text that is there", 23), 23);
        for (int k = 0; k < 3; k++)
            pirn_wg_go(&users, reads_on, fd[0]);
        pirn_wg_go(&users, waits_on, fd[0], (int)PIRN_IN);
        pirn_wg_go(&users, sets_deadlines, fd[0]);
        is_closed_under(fd[0], &users, i);
        CHECK_EQ(pirn_write(fd[1], "x", 1), -EPIPE);
        CHECK_EQ(pirn_close(fd[1]), 0);
    }
}

/* --- a number is another's only when the calls on it are over ---------------------------------------------------- */

/* The moment that number is closed it is that of another file, in which nothing can be read, and nothing must be
 * written. Libc's close() is this one, for the runtime too. */
static atomic_int taken = -1;
static int other;

__attribute__((visibility("default"))) int close(int fd)
{
    if (fd < 0 || !atomic_compare_exchange_strong(&taken, &(int){fd}, -1))
        return (int)syscall(SYS_close, fd);
    CHECK_EQ(dup3(other, fd, O_CLOEXEC), fd);
    return 0;
}

static void is_taken_next(int fd)
{
    other = memfd_create("other", MFD_CLOEXEC);
    CHECK_GE(other, 0);
    atomic_store(&taken, fd);
}

static void was_not_touched(int fd)
{
    CHECK_EQ(atomic_load(&taken), -1);
    CHECK_EQ(lseek(other, 0, SEEK_END), 0);
    CHECK_EQ(close(other), 0);
    CHECK_EQ(close(fd), 0);
}

static atomic_long result;

static void writes_all(int fd)
{
    atomic_store(&result, pirn_write_all(fd, much, sizeof much));
}

/* A write that ends early, since it was closed, is not the end of the call: it asks why. */
TEST_ATTR(number_of_one_that_writes_all, PROCS, .timeout = 60)
{
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 16; i++) {
        int fd[2], n = 0;
        pirn_wg wg = {0};
        make_two(fd, i);
        is_taken_next(fd[1]);
        pirn_wg_go(&wg, writes_all, fd[1]);
        while (n == 0)
            CHECK_EQ(ioctl(fd[0], FIONREAD, &n), 0);
        if (i % 3)
            wait_until_idle();
        CHECK_EQ(pirn_close(fd[1]), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(result, -EBADF);
        was_not_touched(fd[1]);
        CHECK_EQ(pirn_close(fd[0]), 0);
    }
    CHECK_EQ(pirn_stop(), 0);
}

static void reads_full(int fd)
{
    atomic_store(&result, pirn_read_full(fd, much, sizeof much));
}

static void *feeds(void *arg)
{
    while (write(*(int *)arg, "1234", 4) == 4) {
    }
    CHECK(errno == EPIPE || errno == ECONNRESET);
    return NULL;
}

/* The end of a file is what it would see of another's. */
TEST_ATTR(number_of_one_that_reads_in_full, PROCS, .timeout = 60)
{
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(pirn_start(NULL), 0);
    for (int i = 0; i < 64 / FEW; i++) {
        int fd[2], n = 1;
        pthread_t feeder;
        pirn_wg wg = {0};
        make_two(fd, i / 4 * 8 + i % 2); /* blocking: the feeder waits for room */
        CHECK_EQ(write(fd[1], "x", 1), 1);
        is_taken_next(fd[0]);
        pirn_wg_go(&wg, reads_full, fd[0]);
        while (n)
            CHECK_EQ(ioctl(fd[0], FIONREAD, &n), 0);
        CHECK_EQ(pthread_create(&feeder, NULL, feeds, &fd[1]), 0);
        plain_sleep((i % 8) * 20 * PIRN_US);
        CHECK_EQ(pirn_close(fd[0]), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(pthread_join(feeder, NULL), 0);
        CHECK_EQ(result, -EBADF);
        was_not_touched(fd[0]);
        CHECK_EQ(pirn_close(fd[1]), 0);
    }
    CHECK_EQ(pirn_stop(), 0);
}

/* --- nothing begins after the close, though the number is there still -------------------------------------------- */

static void is_told(int fd)
{
    char c;
    CHECK_EQ(pirn_read(fd, &c, 1), -EBADF);
}

static void every_call_is_refused(int fd, int file)
{
    char c = 0;
    struct iovec v = {&c, 1};
    struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "/"};
    off_t from = 0;
    CHECK_EQ(pirn_read(fd, &c, 1), -EBADF);
    CHECK_EQ(pirn_readv(fd, &v, 1), -EBADF);
    CHECK_EQ(pirn_read_full(fd, &c, 1), -EBADF);
    CHECK_EQ(pirn_recvfrom(fd, &c, 1, 0, NULL, NULL), -EBADF);
    CHECK_EQ(pirn_recvmsg(fd, &msg, 0), -EBADF);
    CHECK_EQ(pirn_write(fd, &c, 1), -EBADF);
    CHECK_EQ(pirn_writev(fd, &v, 1), -EBADF);
    CHECK_EQ(pirn_write_all(fd, &c, 1), -EBADF);
    CHECK_EQ(pirn_sendto(fd, &c, 1, 0, NULL, 0), -EBADF);
    CHECK_EQ(pirn_sendmsg(fd, &msg, 0), -EBADF);
    CHECK_EQ(pirn_sendfile(fd, file, &from, 1), -EBADF);
    CHECK_EQ(pirn_accept(fd, NULL, NULL), -EBADF);
    CHECK_EQ(pirn_connect(fd, (struct sockaddr *)&at, sizeof at), -EBADF);
    CHECK_EQ(pirn_fd_wait(fd, PIRN_IN, PIRN_NEVER), -EBADF);
    CHECK_EQ(pirn_fd_wait(fd, PIRN_OUT, 1), -EBADF);
    CHECK_EQ(pirn_fd_deadline(fd, 0, 0), -EBADF);
    CHECK_EQ(pirn_fd_adopt(fd), -EBADF);
    CHECK_EQ(pirn_fd_cancel(fd), -EBADF);
    CHECK_EQ(pirn_shutdown(fd, SHUT_RDWR), -EBADF);
    CHECK_EQ(pirn_pread(fd, &c, 1, 0), -EBADF);
    CHECK_EQ(pirn_pwrite(fd, &c, 1, 0), -EBADF);
    CHECK_EQ(pirn_fsync(fd), -EBADF);
    CHECK_EQ(pirn_close(fd), -EBADF);
}

/* On one P the reader, who keeps the number, gets to run only when goroutine 1 waits; or when it is preempted. */
TEST_RUN_ATTR(nothing_begins_after_close, .procs = "1")
{
    int kept = 0, file = memfd_create("file", MFD_CLOEXEC);
    for (int i = 1; i < 32; i += 2) {
        int fd[2];
        pirn_wg wg = {0};
        make_two(fd, i);
        pirn_wg_go(&wg, is_told, fd[0]);
        let_wait();
        CHECK_EQ(pirn_close(fd[0]), 0);
        every_call_is_refused(fd[0], file);
        kept += is_open(fd[0]);
        pirn_wg_wait(&wg);
        CHECK(!is_open(fd[0]));
        every_call_is_refused(fd[0], file);
        CHECK_EQ(pirn_close(fd[1]), 0);
    }
    CHECK_EQ(close(file), 0);
    CHECK_GT(kept, 0);
}

/* --- many calls on one pair, each with a short deadline: RacyRead, RacyWrite, ConcurrentMethods, CloseTimeout ---- */

enum { CALLS = 40 };
static atomic_long came, went;

static void reads_or_is_late(int fd)
{
    char buf[64];
    for (int i = 0; i < CALLS; i++) {
        ssize_t r = pirn_read(fd, buf, sizeof buf);
        CHECK(r > 0 || r == -ETIMEDOUT);
        for (ssize_t k = 0; k < r; k++)
            CHECK_EQ(buf[k], 'a');
        atomic_fetch_add(&came, r > 0 ? r : 0);
        if (r < 0)
            CHECK_EQ(pirn_fd_deadline(fd, pirn_now() + 50 * PIRN_US, pirn_now() + 50 * PIRN_US), 0);
    }
}

static void writes_or_is_late(int fd)
{
    char buf[1000];
    memset(buf, 'a', sizeof buf);
    for (int i = 0; i < CALLS; i++) {
        ssize_t r = pirn_write(fd, buf, sizeof buf);
        CHECK(r > 0 || r == -ETIMEDOUT);
        atomic_fetch_add(&went, r > 0 ? r : 0);
        if (r < 0)
            CHECK_EQ(pirn_fd_deadline(fd, pirn_now() + 50 * PIRN_US, pirn_now() + 50 * PIRN_US), 0);
    }
}

/* What was read is what was written, whichever calls were late. */
TEST_RUN_ATTR(short_deadlines, PROCS, .timeout = 60)
{
    for (int i = 0; i < 16 / FEW; i++) {
        char buf[4096];
        int fd[2];
        ssize_t r;
        pirn_wg wg = {0};
        make_two(fd, i);
        atomic_store(&came, 0);
        atomic_store(&went, 0);
        for (int k = 0; k < 2; k++)
            CHECK_EQ(pirn_fd_deadline(fd[k], 1, 1), 0);
        for (int k = 0; k < 4; k++) {
            pirn_wg_go(&wg, reads_or_is_late, fd[0]);
            pirn_wg_go(&wg, writes_or_is_late, fd[1]);
        }
        pirn_wg_wait(&wg);
        CHECK_EQ(pirn_fd_deadline(fd[0], 0, 0), 0);
        CHECK_EQ(pirn_close(fd[1]), 0);
        while ((r = pirn_read(fd[0], buf, sizeof buf)) > 0)
            atomic_fetch_add(&came, r);
        CHECK_EQ(r, 0);
        CHECK_EQ(atomic_load(&came), atomic_load(&went));
        CHECK_EQ(pirn_close(fd[0]), 0);
    }
}
