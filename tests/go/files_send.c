/* SPDX-License-Identifier: MIT */
/* pirn_sendfile. */
#include "go/files.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { SIZE = 700 * 1000 + 7 };

static void pair(int fds[2], int flags)
{
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, fds), 0);
}

static void *read_all(void *arg)
{
    int fd = *(int *)arg;
    static unsigned char buf[5000];
    size_t at = 0;
    for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0; at += (size_t)n)
        check_bytes(buf, (size_t)n, at);
    CHECK_EQ(at, SIZE);
    return NULL;
}

static void reads_all(int *fd)
{
    pirn_blocking(read_all, fd);
}

static void send_all(int flags, bool own_offset, bool cold)
{
    pirn_wg wg = {0};
    int fds[2], fd = temp_file(0);
    off_t at = 0;
    pair(fds, 0);
    if (flags)
        CHECK_EQ(fcntl(fds[0], F_SETFL, flags), 0);
    write_file(fd, SIZE);
    if (cold)
        drop_cache(fd);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    pirn_wg_go(&wg, reads_all, &fds[1]);
    CHECK_EQ(pirn_sendfile(fds[0], fd, own_offset ? &at : NULL, 2 * SIZE), SIZE);
    CHECK_EQ(own_offset ? at : lseek(fd, 0, SEEK_CUR), SIZE);
    CHECK_EQ(pirn_sendfile(fds[0], fd, own_offset ? &at : NULL, 100), 0);
    CHECK_EQ(fcntl(fds[0], F_GETFL) & O_NONBLOCK, flags);
    close(fds[0]);
    pirn_wg_wait(&wg);
    close(fds[1]);
    close(fd);
}

TEST_RUN_ATTR(sends_a_file, PROCS)
{
    for (int i = 0; i < 8; i++)
        send_all(i & 1 ? O_NONBLOCK : 0, i & 2, i & 4);
}

TEST_RUN_ATTR(errors, PROCS)
{
    off_t at = 0;
    int fds[2], fd = temp_file(0);
    pair(fds, SOCK_NONBLOCK);
    write_file(fd, 1000);
    CHECK_EQ(pirn_sendfile(-1, fd, &at, 10), -EBADF);
    CHECK_EQ(pirn_sendfile(fds[0], -1, &at, 10), -EBADF);
    CHECK_EQ(pirn_sendfile(fds[0], fd, &at, 0), 0);
    at = -1;
    CHECK_EQ(pirn_sendfile(fds[0], fd, &at, 10), -EINVAL);
    close(fds[0]);
    close(fds[1]);
    close(fd);
}

/* More than the kernel takes at a time. */
TEST_RUN_ATTR(sends_more_than_two_gigabytes, .procs = "1,4", .timeout = 60)
{
    const off_t size = ((off_t)1 << 31) + 12345;
    off_t at = 0;
    int fd = memfd_create("holes", MFD_CLOEXEC), out = open("/dev/null", O_WRONLY | O_NONBLOCK);
    CHECK(fd >= 0 && out >= 0);
    CHECK_EQ(ftruncate(fd, size), 0);
    CHECK_EQ(pirn_sendfile(out, fd, &at, SIZE_MAX), size);
    CHECK_EQ(at, size);
    CHECK_EQ(pirn_sendfile(out, fd, NULL, (size_t)size), size);
    close(out);
    close(fd);
}

static atomic_int sigpipes;

static void count_sigpipe(int sig)
{
    (void)sig;
    atomic_fetch_add(&sigpipes, 1);
}

/* The default action would kill the process. */
TEST_RUN_ATTR(no_signal_for_a_gone_peer, PROCS)
{
    off_t at = 0;
    int fds[2], fd = temp_file(0);
    write_file(fd, 1000);
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            signal(SIGPIPE, count_sigpipe);
        pair(fds, i % 2 ? SOCK_NONBLOCK : 0);
        close(fds[1]);
        CHECK_EQ(pirn_sendfile(fds[0], fd, &at, 10), -EPIPE);
        close(fds[0]);
    }
    CHECK_EQ(atomic_load(&sigpipes), 0);
    raise(SIGPIPE); /* the mask is as it was */
    CHECK_EQ(atomic_load(&sigpipes), 1);
    signal(SIGPIPE, SIG_DFL);
    close(fd);
}

struct reader {
    int fd, n; /* reads so much, and closes it */
};

static void *reads_some_and_closes(void *arg)
{
    static char buf[4096];
    struct reader *r = arg;
    for (ssize_t n = 0, done = 0; done < r->n; done += n)
        CHECK_GT(n = read(r->fd, buf, sizeof buf), 0);
    close(r->fd);
    return NULL;
}

/* The peer goes when part is sent: the call says how much, and the kernel raises the signal all the same, if it
 * was between two pieces. */
TEST_RUN_ATTR(no_signal_when_part_is_sent, PROCS)
{
    int fd = temp_file(0);
    write_file(fd, SIZE);
    for (int i = 0; i < 150; i++) {
        int fds[2];
        off_t at = 0;
        pthread_t t;
        pair(fds, 0);
        CHECK_EQ(fcntl(fds[0], F_SETFL, i % 2 ? O_NONBLOCK : 0), 0);
        struct reader reader = {fds[1], 1000 + i * 1500};
        CHECK_EQ(pthread_create(&t, NULL, reads_some_and_closes, &reader), 0);
        ssize_t n = pirn_sendfile(fds[0], fd, &at, SIZE); /* more than there is room for */
        CHECK(n > 0 && n < SIZE && n == at);
        CHECK_EQ(pirn_sendfile(fds[0], fd, &at, SIZE), -EPIPE);
        pthread_join(t, NULL);
        close(fds[0]);
    }
    close(fd);
}

/* --- closed while it sends: the number is nobody else's until it has returned (rule R6) --------------------- */

static atomic_long sent;

static void sends_much(int out, int in)
{
    off_t at = 0;
    atomic_store(&sent, pirn_sendfile(out, in, &at, SIZE));
}

/* Its number may be another's by now: a poller's, say. */
static bool is_still(int fd, const struct stat *was)
{
    struct stat st = {.st_mode = 0};
    return fstat(fd, &st) == 0 && st.st_ino == was->st_ino && st.st_dev == was->st_dev;
}

static void closed_while_it_sends(int flags)
{
    int fds[2], fd = temp_file(0);
    struct stat file = {.st_mode = 0}, socket = file;
    pirn_wg wg = {0};
    static char buf[SIZE];
    pair(fds, flags);
    write_file(fd, SIZE);
    CHECK(fstat(fd, &file) == 0 && fstat(fds[0], &socket) == 0);
    atomic_store(&sent, 0);
    pirn_wg_go(&wg, sends_much, fds[0], fd);
    /* Until it has begun; it can't have come to its end. */
    for (int ready = 0; !ready; pirn_sleep(PIRN_MS)) {
        CHECK_EQ(ioctl(fds[1], FIONREAD, &ready), 0);
    }
    CHECK_EQ(pirn_close(fd), 0);
    CHECK(is_still(fd, &file));
    CHECK_EQ(pirn_close(fds[0]), 0);
    CHECK_EQ(pirn_pread(fd, buf, 1, 0), -EBADF); /* none begins any more */
    CHECK_EQ(pirn_fsync(fd), -EBADF);
    ssize_t n, all = 0;
    while ((n = pirn_read(fds[1], buf, SIZE)) > 0) {
        all += n;
    }
    CHECK_EQ(n, 0);
    pirn_wg_wait(&wg);
    CHECK_EQ(all, atomic_load(&sent));
    CHECK(!is_still(fd, &file) && !is_still(fds[0], &socket));
    CHECK_EQ(pirn_close(fds[1]), 0);
}

TEST_RUN_ATTR(closed_while_it_sends, PROCS)
{
    closed_while_it_sends(0);
    closed_while_it_sends(SOCK_NONBLOCK);
}

static void cancels(pirn_ctx *ctx, int fd)
{
    int n = 0;
    SLEEP_UNTIL(ioctl(fd, FIONREAD, &n) == 0 && n > 0);
    pirn_ctx_cancel(ctx, 0);
}

/* Nobody reads: what fits is sent, and then the context ends the wait. */
TEST_RUN_ATTR(a_context_ends_the_wait, PROCS)
{
    off_t at = 0;
    int fds[2], fd = temp_file(0);
    pirn_wg wg = {0};
    write_file(fd, SIZE);
    pair(fds, SOCK_NONBLOCK);
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_wg_go(&wg, cancels, ctx, fds[1]);
    pirn_ctx *old = pirn_ctx_use(ctx);
    ssize_t n = pirn_sendfile(fds[0], fd, &at, SIZE);
    CHECK_GT(n, 0);
    CHECK_LT(n, SIZE);
    CHECK_EQ(at, n);
    CHECK_EQ(pirn_sendfile(fds[0], fd, &at, SIZE), -ECANCELED);
    CHECK_EQ(at, n);
    pirn_ctx_use(old);
    pirn_wg_wait(&wg);
    pirn_ctx_release(ctx);
    close(fds[0]);
    close(fds[1]);
    close(fd);
}

/* As a write: one that begins too late does not begin. */
TEST_RUN_ATTR(a_deadline_that_is_over, PROCS)
{
    int fds[2], fd = temp_file(0);
    off_t at = 0;
    pair(fds, SOCK_NONBLOCK);
    write_file(fd, 100);
    CHECK_EQ(pirn_fd_deadline(fds[0], 0, 1), 0);
    CHECK_EQ(pirn_sendfile(fds[0], fd, &at, 100), -ETIMEDOUT);
    CHECK_EQ(at, 0);
    CHECK_EQ(pirn_fd_deadline(fds[0], 1, 0), 0); /* of reads */
    CHECK_EQ(pirn_sendfile(fds[0], fd, &at, 100), 100);
    close(fds[0]);
    close(fds[1]);
    close(fd);
}

TEST(without_a_runtime)
{
    off_t at = 0;
    char buf[1000];
    int fds[2], fd = temp_file(0);
    write_file(fd, 1000);
    pair(fds, SOCK_NONBLOCK);
    CHECK_EQ(pirn_sendfile(fds[0], fd, &at, 5000), 1000);
    CHECK_EQ(read(fds[1], buf, sizeof buf), 1000);
    close(fds[1]);
    CHECK_EQ(pirn_sendfile(fds[0], fd, (at = 0, &at), 5000), -EPIPE);
    close(fds[0]);
    close(fd);
}
