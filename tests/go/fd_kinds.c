/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of every kind, that pirn did not make: they work, and their flags stay what they were
 * (rule R7).
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net.h"
#include "temp.h"

#define PROCS .procs = "1,2,4,16"

static void read_n(int fd, void *buf, long n, atomic_long *result)
{
    atomic_store(result, pirn_read(fd, buf, (size_t)n));
}

/* Reads n bytes of what becomes ready only after the read has begun to wait. */
#define READ_LATER(fd, n, make_ready)                                                              \
    do {                                                                                           \
        char buf_[64];                                                                             \
        atomic_long r_ = 999;                                                                      \
        pirn_wg wg_ = {0};                                                                         \
        int flags_ = fcntl(fd, F_GETFL);                                                           \
        pirn_wg_go(&wg_, read_n, (int)(fd), (void *)buf_, (long)sizeof buf_, &r_);                 \
        let_wait();                                                                                \
        CHECK_EQ(r_, 999);                                                                         \
        CHECK_EQ(fcntl(fd, F_GETFL), flags_);                                                      \
        make_ready;                                                                                \
        pirn_wg_wait(&wg_);                                                                        \
        CHECK_EQ(r_, n);                                                                           \
        CHECK_EQ(fcntl(fd, F_GETFL), flags_);                                                      \
    } while (0)

TEST_RUN_ATTR(pipes, PROCS)
{
    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        int fd[2];
        char c;
        CHECK_EQ(pipe2(fd, O_CLOEXEC | flags), 0);
        READ_LATER(fd[0], 3, CHECK_EQ(pirn_write(fd[1], "abc", 3), 3));
        CHECK_EQ(pirn_close(fd[1]), 0);
        CHECK_EQ(pirn_read(fd[0], &c, 1), 0);
        CHECK_EQ(pirn_close(fd[0]), 0);
    }
}

/* The same for one that waits to write. */
static void write_n(int fd, long n, atomic_long *result)
{
    static char much[1 << 20];
    atomic_store(result, pirn_write(fd, much, (size_t)n));
}

TEST_RUN_ATTR(writes_later, PROCS)
{
    enum { MUCH = 1 << 20 };
    for (int kind = 0; kind < 4; kind++) {
        int fd[2], nonblock = kind & 1;
        if (kind & 2) {
            int type = SOCK_STREAM | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0);
            CHECK_EQ(socketpair(AF_UNIX, type, 0, fd), 0);
        } else {
            CHECK_EQ(pipe2(fd, O_CLOEXEC | (nonblock ? O_NONBLOCK : 0)), 0);
        }
        pirn_wg wg = {0};
        atomic_long r = 999;
        int flags = fcntl(fd[1], F_GETFL);
        pirn_wg_go(&wg, write_n, fd[1], (long)MUCH, &r);
        let_wait();
        CHECK_EQ(r, 999);
        CHECK_EQ(fcntl(fd[1], F_GETFL), flags);
        char *buf = malloc(MUCH);
        CHECK_EQ(pirn_read_full(fd[0], buf, MUCH), MUCH);
        free(buf);
        pirn_wg_wait(&wg);
        CHECK_EQ(r, MUCH);
        CHECK_EQ(fcntl(fd[1], F_GETFL), flags);
        CHECK_EQ(!!(flags & O_NONBLOCK), nonblock);
        CHECK_EQ(pirn_close(fd[0]), 0);
        CHECK_EQ(pirn_close(fd[1]), 0);
    }
}

TEST_RUN_ATTR(fifo, PROCS)
{
    char path[TEMP_PATH];
    CHECK_EQ(mkfifo(temp_name(path), 0600), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(unlink(path), 0);
    READ_LATER(fd, 2, CHECK_EQ(pirn_write(fd, "ab", 2), 2));
    CHECK_EQ(pirn_close(fd), 0);
}

/* Many parts are one write: one packet, where a FIFO has them. */
TEST_RUN_ATTR(many_parts_at_once, PROCS)
{
    enum { N = 20 };
    char path[TEMP_PATH], buf[100], c = 'x';
    struct iovec parts[N];
    CHECK_EQ(mkfifo(temp_name(path), 0600), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(unlink(path), 0);
    if (fcntl(fd, F_SETFL, O_DIRECT)) {
        SKIP("no packets here");
    }
    for (int i = 0; i < N; i++) {
        parts[i] = (struct iovec){&c, 1};
    }
    CHECK_EQ(pirn_writev(fd, parts, N), N);
    CHECK_EQ(read(fd, buf, sizeof buf), N);
    CHECK_EQ(pirn_close(fd), 0);
}

TEST_RUN_ATTR(event_and_timer, PROCS)
{
    uint64_t one = 1;
    struct itimerspec soon = {.it_value.tv_nsec = 100000};
    int event = eventfd(0, EFD_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    READ_LATER(event, 8, CHECK_EQ(pirn_write(event, &one, 8), 8));
    READ_LATER(timer, 8, timerfd_settime(timer, 0, &soon, NULL));
    CHECK_EQ(pirn_close(event), 0);
    CHECK_EQ(pirn_close(timer), 0);
}

TEST_RUN_ATTR(notify, PROCS)
{
    char path[TEMP_PATH];
    int fd = inotify_init1(IN_CLOEXEC);
    CHECK_EQ(mkdir(temp_name(path), 0700), 0);
    CHECK_GE(inotify_add_watch(fd, path, IN_DELETE_SELF), 0);
    READ_LATER(fd, 2 * (long)sizeof(struct inotify_event), CHECK_EQ(rmdir(path), 0));
    CHECK_EQ(pirn_close(fd), 0);
}

TEST_RUN_ATTR(terminal, PROCS)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) || unlockpt(master)) {
        SKIP("no terminals here");
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK_GE(slave, 0);
    READ_LATER(slave, 3, CHECK_EQ(pirn_write(master, "hi\n", 3), 3));
    char buf[16];
    CHECK_EQ(pirn_write(slave, "ok", 2), 2);
    CHECK_GT(pirn_read(master, buf, sizeof buf), 0);
    CHECK_EQ(pirn_close(slave), 0);
    CHECK_EQ(pirn_close(master), 0);
}

TEST_RUN_ATTR(process, PROCS)
{
    int gate[2];
    CHECK_EQ(pipe2(gate, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        close(gate[1]);
        _exit(read(gate[0], &c, 1) != 0);
    }
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        SKIP("no pidfds here");
    }
    CHECK_EQ(pirn_fd_wait(fd, PIRN_IN, pirn_now() + PIRN_MS), -ETIMEDOUT);
    CHECK_EQ(pirn_close(gate[1]), 0);
    CHECK_EQ(pirn_fd_wait(fd, PIRN_IN, PIRN_NEVER), PIRN_IN);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(pirn_close(fd), 0);
    CHECK_EQ(pirn_close(gate[0]), 0);
}

TEST_RUN_ATTR(file, PROCS)
{
    char path[TEMP_PATH], buf[8];
    int fd = open(temp_path(path), O_RDWR | O_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(pirn_write(fd, "hello", 5), 5);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(pirn_fd_wait(fd, PIRN_IN | PIRN_OUT, PIRN_NEVER), PIRN_IN | PIRN_OUT);
    CHECK_EQ(pirn_read(fd, buf, sizeof buf), 5);
    CHECK(memcmp(buf, "hello", 5) == 0);
    CHECK_EQ(pirn_read(fd, buf, sizeof buf), 0);
    CHECK_EQ(pirn_fd_adopt(fd), 0);
    CHECK_EQ(pirn_write(fd, "x", 1), 1);
    CHECK_EQ(pirn_close(fd), 0);
    int dir = open("/", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(pirn_read(dir, buf, 1), -EISDIR);
    CHECK_EQ(pirn_close(dir), 0);
}

/* A blocking socket, also for accept and connect. */
static void connect_to(int fd, struct sockaddr_in *to)
{
    CHECK_EQ(pirn_connect(fd, (struct sockaddr *)to, sizeof *to), 0);
}

static void use_blocking_sockets(bool adopted)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&at, len), 0);
    CHECK_EQ(listen(listener, 10), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    if (adopted) {
        CHECK_EQ(pirn_fd_adopt(listener), 0);
    }
    CHECK_EQ(pirn_fd_deadline(listener, pirn_now() + PIRN_MS, 0), 0);
    CHECK_EQ(pirn_accept(listener, NULL, NULL), -ETIMEDOUT);
    CHECK_EQ(pirn_fd_deadline(listener, 0, 0), 0);
    if (adopted) {
        CHECK_EQ(pirn_fd_adopt(fd), 0);
    }
    pirn_wg wg = {0};
    pirn_wg_go(&wg, connect_to, fd, &at);
    int other = pirn_accept(listener, (struct sockaddr *)&at, &len);
    CHECK_GE(other, 0);
    pirn_wg_wait(&wg);
    CHECK_EQ(fcntl(other, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    CHECK_EQ(fcntl(other, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    READ_LATER(fd, 4, CHECK_EQ(pirn_write(other, "data", 4), 4));
    READ_LATER(other, 4, CHECK_EQ(pirn_write(fd, "data", 4), 4));
    CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(pirn_close(listener), 0);
    CHECK_EQ(pirn_close(other), 0);
    CHECK_EQ(pirn_close(fd), 0);
}

TEST_RUN_ATTR(blocking_sockets, PROCS)
{
    use_blocking_sockets(false);
}

TEST_RUN_ATTR(blocking_sockets_adopted, PROCS)
{
    use_blocking_sockets(true);
}

/* Several accept on a listener that blocks, and one client comes: the others can be ended. */
static void accept_in(int fd, pirn_ctx *ctx, atomic_int *accepted, atomic_int *over)
{
    pirn_ctx_use(ctx);
    int r = pirn_accept(fd, NULL, NULL);
    CHECK(r >= 0 || r == -ECANCELED || r == -EBADF);
    if (r >= 0) {
        atomic_fetch_add(accepted, 1);
        CHECK_EQ(pirn_close(r), 0);
    }
    atomic_fetch_add(over, 1);
}

TEST_RUN_ATTR(many_accept_where_it_blocks, PROCS)
{
    enum { N = 8, ROUNDS = 30 };
    for (int k = 0; k < ROUNDS; k++) {
        int i = k % 3;
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof at;
        atomic_int accepted = 0, over = 0;
        pirn_wg wg = {0};
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(bind(listener, (struct sockaddr *)&at, len), 0);
        CHECK_EQ(listen(listener, 10), 0);
        CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &len), 0);
        if (i == 0) { /* it is there when they come */
            CHECK_EQ(connect(fd, (struct sockaddr *)&at, len), 0);
        }
        for (int n = 0; n < N; n++) {
            pirn_wg_go(&wg, accept_in, listener, i < 2 ? ctx : pirn_ctx_background(), &accepted,
                       &over);
        }
        if (i) {
            let_wait();
            CHECK_EQ(connect(fd, (struct sockaddr *)&at, len), 0);
        }
        while (!atomic_load(&accepted)) {
            let_wait();
        }
        let_wait();
        if (i < 2) {
            pirn_ctx_cancel(ctx, 0);
            pirn_wg_wait(&wg);
        }
        CHECK_EQ(pirn_close(listener), 0);
        pirn_wg_wait(&wg);
        CHECK_EQ(accepted, 1);
        CHECK_EQ(over, N);
        CHECK_EQ(pirn_close(fd), 0);
        pirn_ctx_release(ctx);
    }
}

static void read_all_of(int fd, atomic_int *got)
{
    char buf[4];
    ssize_t r;
    while ((r = pirn_read(fd, buf, sizeof buf)) > 0) {
        atomic_fetch_add(got, (int)r);
    }
    if (r) { /* 0: it began after the close, when sysmon had a file open under the number */
        CHECK_EQ(r, -EBADF);
    }
}

/* Several read what comes, in small parts, and wait again: no read blocks, so that close ends them. */
TEST_RUN_ATTR(many_read_a_fifo, PROCS)
{
    enum { N = 4, ROUNDS = 100, BYTES = 64 };
    char path[TEMP_PATH], bytes[BYTES] = {0};
    CHECK_EQ(mkfifo(temp_name(path), 0600), 0);
    int out = open(path, O_RDWR | O_CLOEXEC);
    CHECK_GE(out, 0);
    for (int i = 0; i < ROUNDS; i++) {
        atomic_int got = 0;
        pirn_wg wg = {0};
        int fd = open(path, O_RDWR | O_CLOEXEC);
        CHECK_GE(fd, 0);
        for (int k = 0; k < N; k++) {
            pirn_wg_go(&wg, read_all_of, fd, &got);
        }
        CHECK_EQ(pirn_write(out, bytes, BYTES), BYTES);
        while (atomic_load(&got) < BYTES) {
            pirn_yield();
        }
        CHECK_EQ(pirn_close(fd), 0);
        pirn_wg_wait(&wg);
    }
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(pirn_close(out), 0);
}

/* A write of more than fits is ended by its deadline, and counts what went. */
static void write_too_much(int fd)
{
    enum { MUCH = 1 << 20 };
    static char much[MUCH];
    int flags = fcntl(fd, F_GETFL);
    CHECK_EQ(pirn_fd_deadline(fd, 0, pirn_now() + 10 * PIRN_MS), 0);
    ssize_t r = pirn_write(fd, much, MUCH);
    CHECK_GT(r, 0);
    CHECK_LT(r, MUCH);
    CHECK_EQ(fcntl(fd, F_GETFL), flags);
}

TEST_RUN_ATTR(write_too_much_to_a_fifo, PROCS)
{
    char path[TEMP_PATH];
    CHECK_EQ(mkfifo(temp_name(path), 0600), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(unlink(path), 0);
    write_too_much(fd);
    CHECK_EQ(pirn_close(fd), 0);
}

TEST_RUN_ATTR(write_too_much_to_a_terminal, PROCS)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) || unlockpt(master)) {
        SKIP("no terminals here");
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK_GE(slave, 0);
    write_too_much(slave);
    CHECK_EQ(pirn_close(slave), 0);
    CHECK_EQ(pirn_close(master), 0);
}

/* --- no descriptor ------------------------------------------------------------------------------------------ */

TEST_RUN(none)
{
    char c = 0;
    struct iovec v = {&c, 1};
    CHECK_EQ(pirn_read(-1, &c, 1), -EBADF);
    CHECK_EQ(pirn_read(987, &c, 1), -EBADF);
    CHECK_EQ(pirn_write(987, &c, 1), -EBADF);
    CHECK_EQ(pirn_readv(987, &v, 1), -EBADF);
    CHECK_EQ(pirn_writev(987, &v, 1), -EBADF);
    CHECK_EQ(pirn_readv(0, &v, -1), -EINVAL);
    CHECK_EQ(pirn_accept(987, NULL, NULL), -EBADF);
    CHECK_EQ(pirn_close(987), -EBADF);
    CHECK_EQ(pirn_close(-1), -EBADF);
    CHECK_EQ(pirn_fd_wait(987, PIRN_IN, PIRN_NEVER), -EBADF);
    CHECK_EQ(pirn_fd_adopt(987), -EBADF);
    CHECK_EQ(pirn_shutdown(987, SHUT_WR), -EBADF);
    CHECK_EQ(pirn_read(INT_MAX, &c, 1), -EBADF); /* more than there can be */
    CHECK_EQ(pirn_write(INT_MAX, &c, 1), -EBADF);
    CHECK_EQ(pirn_accept(INT_MAX, NULL, NULL), -EBADF);
    CHECK_EQ(pirn_pread(INT_MAX, &c, 1, 0), -EBADF);
    CHECK_EQ(pirn_fsync(INT_MAX), -EBADF);
    CHECK_EQ(pirn_sendfile(0, INT_MAX, NULL, 1), -EBADF);
    CHECK_EQ(pirn_close(INT_MAX), -EBADF);
    CHECK_EQ(pirn_fd_wait(INT_MAX, PIRN_IN, PIRN_NEVER), -EBADF);
    CHECK_EQ(pirn_fd_deadline(INT_MAX, 0, 0), -EBADF);
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(pirn_read(fd[1], &c, 1), -EBADF);
    CHECK_EQ(pirn_write(fd[0], &c, 1), -EBADF);
    CHECK_EQ(pirn_readv(fd[0], NULL, 1), -EFAULT);
    CHECK_EQ(pirn_writev(fd[1], NULL, 1), -EFAULT);
    CHECK_EQ(pirn_writev(fd[1], NULL, 0), 0);
    CHECK_EQ(pirn_accept(fd[0], NULL, NULL), -ENOTSOCK);
    CHECK_EQ(pirn_recvfrom(fd[0], &c, 1, 0, NULL, NULL), -ENOTSOCK);
    CHECK_EQ(pirn_fd_wait(fd[0], 0, PIRN_NEVER), -EINVAL);
    CHECK_EQ(pirn_close(fd[0]), 0);
    CHECK_EQ(pirn_close(fd[1]), 0);
}

/* --- R6: the number of a foreign descriptor given to another file ------------------------------------------- */

TEST_RUN_ATTR(dup2_between_calls, PROCS)
{
    int a[2], b[2];
    CHECK_EQ(pipe2(a, O_CLOEXEC), 0);
    CHECK_EQ(pipe2(b, O_CLOEXEC), 0);
    int number = dup(a[0]);
    for (int i = 0; i < 10; i++) {
        READ_LATER(number, 1, CHECK_EQ(write(a[1], "a", 1), 1));
        CHECK_EQ(dup2(b[0], number), number);
        READ_LATER(number, 1, CHECK_EQ(write(b[1], "b", 1), 1));
        CHECK_EQ(dup2(a[0], number), number);
    }
    close(number);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

/* While one waits: who comes then waits for the new file, and both are told what it has. */
TEST_RUN_ATTR(dup2_while_one_waits, PROCS)
{
    const char *debug = getenv("PIRN_DEBUG");
    if (debug && strstr(debug, "io=uring")) {
        SKIP("io_uring holds the file that it was asked for");
    }
    int a[2], b[2];
    char c[2];
    atomic_long r[2] = {999, 999};
    pirn_wg wg = {0};
    CHECK_EQ(pipe2(a, O_CLOEXEC), 0);
    CHECK_EQ(pipe2(b, O_CLOEXEC), 0);
    pirn_wg_go(&wg, read_n, a[0], (void *)&c[0], 1L, &r[0]);
    let_wait();
    CHECK_EQ(dup2(b[0], a[0]), a[0]);
    pirn_wg_go(&wg, read_n, a[0], (void *)&c[1], 1L, &r[1]);
    let_wait();
    CHECK_EQ(write(b[1], "xy", 2), 2);
    pirn_wg_wait(&wg);
    CHECK_EQ(r[0], 1);
    CHECK_EQ(r[1], 1);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

/* --- threads that pirn did not make --------------------------------------------------------------------------- */

static void *foreign_echo(void *arg)
{
    int *fd = arg;
    char buf[64];
    ssize_t n;
    while ((n = pirn_read(fd[0], buf, sizeof buf)) > 0) {
        CHECK_EQ(pirn_write_all(fd[1], buf, (size_t)n), n);
    }
    CHECK(n == 0 || n == -EBADF);
    return NULL;
}

static void talk(int to, int from)
{
    char c = 'q';
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(pirn_write(to, &c, 1), 1);
        CHECK_EQ(pirn_read(from, &c, 1), 1);
    }
}

TEST_RUN_ATTR(foreign_thread, PROCS)
{
    int there[2], back[2];
    pthread_t thread;
    CHECK_EQ(pipe2(there, O_CLOEXEC), 0);
    CHECK_EQ(pipe2(back, O_CLOEXEC | O_NONBLOCK), 0);
    int ends[2] = {there[0], back[1]};
    CHECK_EQ(pthread_create(&thread, NULL, foreign_echo, ends), 0);
    talk(there[1], back[0]);
    let_wait();
    CHECK_EQ(pirn_close(there[0]), 0); /* wakes the thread */
    pthread_join(thread, NULL);
    CHECK_EQ(pirn_close(there[1]), 0);
    CHECK_EQ(pirn_close(back[0]), 0);
    CHECK_EQ(pirn_close(back[1]), 0);
}

TEST(without_a_runtime)
{
    int there[2], back[2];
    pthread_t thread;
    CHECK_EQ(pipe2(there, O_CLOEXEC), 0);
    CHECK_EQ(pipe2(back, O_CLOEXEC | O_NONBLOCK), 0);
    int ends[2] = {there[0], back[1]};
    CHECK_EQ(pthread_create(&thread, NULL, foreign_echo, ends), 0);
    talk(there[1], back[0]);
    CHECK_EQ(pirn_close(there[1]), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(pirn_fd_wait(back[0], PIRN_IN, pirn_now() + PIRN_MS), -ETIMEDOUT);
    CHECK_EQ(pirn_fd_wait(back[1], PIRN_OUT, PIRN_NEVER), PIRN_OUT);
    int listener = pirn_listen("tcp", "127.0.0.1:0");
    char addr[64];
    addr_of(listener, addr, sizeof addr);
    int fd = pirn_dial("tcp", addr), other = pirn_accept(listener, NULL, NULL);
    CHECK(listener >= 0 && fd >= 0 && other >= 0);
    CHECK_EQ(pirn_write(fd, "x", 1), 1);
    CHECK_EQ(pirn_read(other, (char[1]){0}, 1), 1);
    CHECK_EQ(pirn_close(fd), 0);
    CHECK_EQ(pirn_close(other), 0);
    CHECK_EQ(pirn_close(listener), 0);
    close(there[0]);
    close(back[0]);
    close(back[1]);
}

/* A foreign thread is woken by a goroutine that is the only one, and by nothing but the poller. */
static void *foreign_waits(void *arg)
{
    CHECK_EQ(pirn_fd_wait(*(int *)arg, PIRN_IN, pirn_now() + 20 * PIRN_SEC), PIRN_IN);
    return NULL;
}

TEST_ATTR(foreign_while_all_sleep, PROCS)
{
    pirn_config config = {0};
    CHECK_EQ(pirn_start(&config), 0);
    for (int i = 0; i < 20; i++) {
        int fd[2];
        pthread_t thread;
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        CHECK_EQ(pthread_create(&thread, NULL, foreign_waits, &fd[0]), 0);
        usleep((unsigned)i % 3 * 500);
        CHECK_EQ(write(fd[1], "x", 1), 1);
        pthread_join(thread, NULL);
        close(fd[0]);
        close(fd[1]);
    }
    CHECK_EQ(pirn_stop(), 0);
}

/* A thread that waits, with a deadline, longer than its runtime: it is not confused by the next ones. */
struct longer {
    int fd[2];
    pthread_t thread[2];
    atomic_int reader; /* the thread */
};

static void *waits_longer(void *arg)
{
    struct longer *a = arg;
    CHECK_EQ(pirn_fd_wait(a->fd[0], PIRN_IN, pirn_now() + 30 * PIRN_MS), -ETIMEDOUT);
    return NULL;
}

static void *reads_longer(void *arg)
{
    struct longer *a = arg;
    char c;
    atomic_store(&a->reader, gettid());
    CHECK_EQ(pirn_read(a->fd[0], &c, 1), -ETIMEDOUT);
    return NULL;
}

/* What /proc says that a thread does in the kernel: the call, its arguments, the stack pointer. */
static bool is_in_futex(int tid, char *what, size_t size)
{
    char path[64], futex[16];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    snprintf(futex, sizeof futex, "%ld ", (long)SYS_futex);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, what, size - 1);
    close(fd);
    what[n > 0 ? n : 0] = '\0';
    return fd < 0 || strncmp(what, futex, strlen(futex)) == 0; /* or the deadline has passed */
}

/* The reader must wait in this runtime: nobody tells those of the next ones of its deadline. */
static int start_waiting(void *arg)
{
    struct longer *a = arg;
    char was[256] = "", is[256];
    CHECK_EQ(pirn_fd_deadline(a->fd[0], pirn_now() + 200 * PIRN_MS, 0), 0);
    CHECK_EQ(pthread_create(&a->thread[0], NULL, waits_longer, a), 0);
    CHECK_EQ(pthread_create(&a->thread[1], NULL, reads_longer, a), 0);
    while (!atomic_load(&a->reader))
        pirn_sleep(PIRN_MS);
    while (!is_in_futex(a->reader, is, sizeof is) || strcmp(is, was)) {
        memcpy(was, is, sizeof was);
        pirn_sleep(5 * PIRN_MS);
    }
    return 0;
}

static int wait_a_little(void *arg)
{
    CHECK_EQ(pirn_fd_wait(*(int *)arg, PIRN_IN, pirn_now() + PIRN_MS), -ETIMEDOUT);
    return 0;
}

TEST_ATTR(foreign_longer_than_runtimes, PROCS)
{
    struct longer a = {.reader = 0};
    CHECK_EQ(pipe2(a.fd, O_CLOEXEC), 0);
    CHECK_EQ(pirn_run(start_waiting, &a), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pirn_run(wait_a_little, a.fd), 0);
    }
    pthread_join(a.thread[0], NULL);
    pthread_join(a.thread[1], NULL);
    close(a.fd[0]);
    close(a.fd[1]);
}

/* The same without a deadline: when the runtime ends it goes on waiting without one. */
static void *reads_on(void *arg)
{
    char c;
    CHECK_EQ(pirn_read(*(int *)arg, &c, 1), 1);
    return NULL;
}

static void *waits_on(void *arg)
{
    CHECK_EQ(pirn_fd_wait(*(int *)arg, PIRN_IN, PIRN_NEVER), PIRN_IN);
    return NULL;
}

static int start_them(void *arg)
{
    struct {
        int *fd;
        pthread_t *thread;
    } *a = arg;
    CHECK_EQ(pthread_create(&a->thread[0], NULL, waits_on, a->fd), 0);
    CHECK_EQ(pthread_create(&a->thread[1], NULL, reads_on, a->fd), 0);
    pirn_sleep(3 * PIRN_MS);
    return 0;
}

TEST_ATTR(foreign_outlives_its_runtime, PROCS)
{
    int fd[2];
    pthread_t thread[2];
    struct {
        int *fd;
        pthread_t *thread;
    } a = {fd, thread};
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        CHECK_EQ(pirn_run(start_them, &a), 0);
        if (i % 2) {
            CHECK_EQ(pirn_run(wait_a_little, fd), 0);
        }
        CHECK_EQ(write(fd[1], "xy", 2), 2);
        pthread_join(thread[0], NULL);
        pthread_join(thread[1], NULL);
        close(fd[0]);
        close(fd[1]);
    }
}

/* --- what is given back ------------------------------------------------------------------------------------- */

static int use_and_leave(void *arg)
{
    int *fd = arg;
    static atomic_long r;
    static char buf[64];
    pirn_go(read_n, fd[0], (void *)buf, 64L, &r);
    pirn_go(read_n, fd[0], (void *)buf, 64L, &r);
    let_wait();
    return pirn_close(fd[0]); /* while two use it: the runtime ends before they come to an end */
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

TEST_ATTR(nothing_is_left, PROCS)
{
    int before = count_fds();
    for (int i = 0; i < 20; i++) {
        int fd[2];
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        CHECK_EQ(pirn_run(use_and_leave, fd), 0);
        close(fd[1]);
        CHECK_EQ(count_fds(), before);
    }
}
