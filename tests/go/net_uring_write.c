/* SPDX-License-Identifier: MIT */
/*
 * Waiting to write with io_uring in place of the pollers: on descriptors of pirn's and of the program's, and
 * everything that ends the wait. tests/go/net_uring.c has the waits to read.
 */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "net.h"
#include "temp.h"

#define PROCS .procs = "1,2,4,16"

static const pirn_config ring = {.io = PIRN_IO_URING};

/* More than there is ever room for in what make() makes. */
enum { MUCH = 2 << 20 };
static char much[MUCH];

/* --- what is full ----------------------------------------------------------------------------------------- */

enum kind { TCP, SOCKET, PIPE, FIFO, KINDS };

struct full_fd {
    int to, from;
    size_t bytes; /* in it */
};

/* Smaller ones make TCP wait for its timers. */
static void small_buffers(int fd)
{
    int size = 128 * 1024;
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
}

/* The test's own: pirn has not seen it yet, or leaves its flags alone. */
static size_t put_all_that_fits(int fd)
{
    size_t n = 0;
    int flags = fcntl(fd, F_GETFL), full = 0;
    CHECK_EQ(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while (full < 3) { /* of TCP some goes on to the other end, a moment later */
        ssize_t r = write(fd, much, 65536);
        r = r < 0 ? write(fd, much, 1) : r;
        n += r > 0 ? (size_t)r : 0;
        full = r > 0 ? 0 : full + 1;
        if (full) {
            CHECK_EQ(errno, EAGAIN);
            pirn_sleep(PIRN_MS / 2);
        }
    }
    CHECK_EQ(fcntl(fd, F_SETFL, flags), 0);
    return n;
}

static struct full_fd make(enum kind kind, bool nonblocking, bool adopted)
{
    int fd[2];
    char path[TEMP_PATH];
    struct full_fd f;
    if (kind == TCP) {
        struct pair p = tcp_pair();
        f.to = p.a, f.from = p.b;
    } else if (kind == SOCKET) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        f.to = fd[0], f.from = fd[1];
    } else if (kind == PIPE) {
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        f.to = fd[1], f.from = fd[0];
    } else {
        CHECK_EQ(mkfifo(temp_name(path), 0600), 0);
        f.from = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        f.to = open(path, O_WRONLY | O_CLOEXEC);
        CHECK(f.to >= 0 && f.from >= 0);
        CHECK_EQ(unlink(path), 0);
    }
    if (kind == TCP || kind == SOCKET) {
        small_buffers(f.to);
        small_buffers(f.from);
    }
    if (kind != TCP && nonblocking) {
        CHECK_EQ(fcntl(f.to, F_SETFL, O_NONBLOCK), 0);
    }
    if (adopted) {
        CHECK_EQ(pirn_fd_adopt(f.to), 0);
    }
    f.bytes = put_all_that_fits(f.to);
    return f;
}

/* --- who waits, and what ends it -------------------------------------------------------------------------- */

enum ending { READ, CLOSE, DEADLINE, NEW_DEADLINE, CONTEXT, CANCEL, GONE, ENDINGS };

struct writer {
    int fd;
    pirn_ctx *ctx;
    atomic_long got;
};

static void writes(struct writer *w)
{
    pirn_ctx_use(w->ctx);
    atomic_store(&w->got, pirn_write(w->fd, much, MUCH));
}

static void read_bytes(int fd, size_t n)
{
    static char buf[65536]; /* goroutine 1 alone reads */
    while (n) {
        ssize_t r = pirn_read(fd, buf, n < sizeof buf ? n : sizeof buf);
        CHECK_GT(r, 0);
        n -= (size_t)r;
    }
}

static long end_it(struct full_fd *f, enum ending ending, pirn_ctx *ctx, int writers)
{
    switch (ending) {
    case READ: read_bytes(f->from, f->bytes + (size_t)writers * MUCH); return MUCH;
    case CLOSE: CHECK_EQ(pirn_close(f->to), 0); return -EBADF;
    case DEADLINE: return -ETIMEDOUT; /* it was set before */
    case NEW_DEADLINE: CHECK_EQ(pirn_fd_deadline(f->to, 0, 1), 0); return -ETIMEDOUT;
    case CONTEXT: pirn_ctx_cancel(ctx, 0); return -ECANCELED;
    case CANCEL: CHECK_EQ(pirn_fd_cancel(f->to), 0); return -ECANCELED;
    default: CHECK_EQ(pirn_close(f->from), 0); return -EPIPE;
    }
}

static bool is_that(enum kind kind, long got, long expected)
{
    /* A reader of TCP that leaves unread bytes behind resets the connection. What fits after all was written. */
    return got == expected
           || (kind == TCP
               && ((expected == -EPIPE && got == -ECONNRESET) || (got > 0 && got < MUCH)));
}

/* The ring does not hold it any more: who reads comes to the end. */
static void comes_to_its_end(int from)
{
    static char buf[65536];
    ssize_t r;
    CHECK_EQ(fcntl(from, F_SETFL, O_NONBLOCK), 0);
    while ((r = read(from, buf, sizeof buf)) > 0) {
    }
    CHECK_EQ(r, 0);
}

/* Several wait for one descriptor: all go on. */
static void wait_and_end(enum kind kind, enum ending ending, bool nonblocking, bool adopted)
{
    enum { WRITERS = 3 };
    struct full_fd f = make(kind, nonblocking, adopted);
    struct writer w[WRITERS];
    pirn_wg wg = {0};
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    if (ending == DEADLINE) {
        CHECK_EQ(pirn_fd_deadline(f.to, 0, pirn_now() + 2 * PIRN_MS), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        w[i].fd = f.to;
        w[i].ctx = ending == CONTEXT ? ctx : pirn_ctx_background();
        atomic_init(&w[i].got, 0);
        pirn_wg_go(&wg, writes, &w[i]);
    }
    let_wait();
    if (ending != DEADLINE) {
        long got = atomic_load(&w[0].got);
        CHECK_EQ(got, 0); /* it does wait */
    }
    long expected = end_it(&f, ending, ctx, WRITERS);
    pirn_wg_wait(&wg);
    for (int i = 0; i < WRITERS; i++) {
        long got = atomic_load(&w[i].got);
        if (!is_that(kind, got, expected)) {
            CHECK_EQ(got, expected);
        }
    }
    if (ending != CLOSE) {
        bool known = kind == TCP || adopted || ending == DEADLINE || ending == NEW_DEADLINE
                     || ending == CANCEL; /* it has something of the number */
        CHECK_EQ(known ? pirn_close(f.to) : close(f.to), 0);
    }
    if (ending != GONE) {
        if (kind != TCP) {
            comes_to_its_end(f.from);
        }
        CHECK_EQ(pirn_close(f.from), 0);
    }
    pirn_ctx_release(ctx);
}

static int each_ending(void *arg)
{
    enum kind kind = *(enum kind *)arg;
    for (int i = 0; i < ENDINGS; i++) {
        wait_and_end(kind, (enum ending)i, false, false);
        if (kind != TCP) {
            wait_and_end(kind, (enum ending)i, true, false);
            wait_and_end(kind, (enum ending)i, false, true);
            wait_and_end(kind, (enum ending)i, true, true);
        }
    }
    return 0;
}

static void run_each(enum kind kind)
{
    signal(SIGPIPE, SIG_DFL); /* nobody is killed */
    CHECK_EQ(pirn_run_config(&ring, each_ending, &kind), 0);
}

TEST_ATTR(tcp, PROCS)
{
    run_each(TCP);
}

TEST_ATTR(socket_of_the_program, PROCS)
{
    run_each(SOCKET);
}

TEST_ATTR(pipe_of_the_program, PROCS)
{
    run_each(PIPE);
}

TEST_ATTR(fifo_of_the_program, PROCS)
{
    run_each(FIFO);
}

/* --- both directions at a time ------------------------------------------------------------------------------ */

static void reads_one(int fd, atomic_int *got)
{
    char c;
    CHECK_EQ(pirn_read(fd, &c, 1), 1);
    atomic_fetch_add(got, c == 'y');
}

/* One waits to read, one to write: each is told of its own direction only, again and again. */
static int both_ways(void *arg)
{
    (void)arg;
    for (int i = 0; i < 12; i++) {
        struct full_fd f = make(i % 2 ? TCP : SOCKET, i & 2, i & 4);
        struct writer w = {.fd = f.to, .ctx = pirn_ctx_background()};
        atomic_int got = 0;
        pirn_wg wg = {0}, reader = {0};
        pirn_wg_go(&wg, writes, &w);
        for (int k = 0; k < 4; k++) {
            pirn_wg_go(&reader, reads_one, f.to, &got);
            if (k % 2) {
                let_wait();
            }
            CHECK_EQ(pirn_write(f.from, "y", 1), 1);
            pirn_wg_wait(&reader);
            CHECK_EQ(atomic_load(&got), k + 1);
            CHECK_EQ(atomic_load(&w.got), 0);
        }
        pirn_wg_go(&reader, reads_one, f.to, &got);
        read_bytes(f.from, f.bytes + MUCH);
        pirn_wg_wait(&wg);
        CHECK_EQ(atomic_load(&w.got), MUCH);
        let_wait();
        CHECK_EQ(atomic_load(&got), 4); /* that there is room is no news to who reads */
        CHECK_EQ(pirn_write(f.from, "y", 1), 1);
        pirn_wg_wait(&reader);
        CHECK_EQ(pirn_close(f.to), 0);
        CHECK_EQ(pirn_close(f.from), 0);
    }
    return 0;
}

TEST_ATTR(both_directions, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, both_ways, NULL), 0);
}

/* --- who only watches --------------------------------------------------------------------------------------- */

static void watches(int fd, bool selects, atomic_int *got)
{
    atomic_store(got, selects ? PIRN_OUT << pirn_select(PIRN_WRITABLE(fd), PIRN_DONE(NULL))
                              : pirn_fd_wait(fd, PIRN_OUT, PIRN_NEVER));
}

static int watch(void *arg)
{
    (void)arg;
    for (int i = 0; i < KINDS * 8; i++) {
        struct full_fd f = make((enum kind)(i % KINDS), i / KINDS & 1, i / KINDS & 2);
        atomic_int got = 0, other = 0;
        pirn_wg wg = {0};
        int tcp = i % KINDS == TCP; /* some goes on to the other end */
        CHECK(pirn_fd_wait(f.to, PIRN_OUT, pirn_now() + PIRN_MS / 2) == -ETIMEDOUT || tcp);
        CHECK(pirn_select(PIRN_WRITABLE(f.to), PIRN_AFTER(PIRN_MS / 2)) == 1 || tcp);
        pirn_wg_go(&wg, watches, f.to, false, &got);
        pirn_wg_go(&wg, watches, f.to, true, &other);
        let_wait();
        CHECK(atomic_load(&got) + atomic_load(&other) == 0 || tcp);
        bool closes = i / KINDS & 4;
        if (closes) {
            CHECK_EQ(pirn_close(f.to), 0);
        } else {
            read_bytes(f.from, f.bytes);
        }
        pirn_wg_wait(&wg);
        CHECK(atomic_load(&got) == (closes ? -EBADF : PIRN_OUT) || tcp);
        CHECK_EQ(atomic_load(&other), PIRN_OUT);
        CHECK_EQ(pirn_close(f.to), closes ? -EBADF : 0);
        CHECK_EQ(pirn_close(f.from), 0);
    }
    return 0;
}

TEST_ATTR(watches, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, watch, NULL), 0);
}

/* --- they come and go ---------------------------------------------------------------------------------------- */

enum { PAGE = 4096 };

/* One leaves a descriptor that is not pirn's, and others come at the same time: nobody is forgotten. */
static void comes_and_goes(int fd, int n, atomic_int *given)
{
    for (int i = 0; i < n; i++) {
        int r = pirn_fd_wait(fd, PIRN_OUT, pirn_now() + (i % 3) * 50 * PIRN_US);
        CHECK(r == PIRN_OUT || r == -ETIMEDOUT);
        if (i % 4 == 0) {
            CHECK_EQ(pirn_write(fd, much, PAGE), PAGE);
            atomic_fetch_add(given, 1);
        }
    }
}

static int come_and_go(void *arg)
{
    (void)arg;
    enum { WRITERS = 4, ROUNDS = 40 };
    int fd[2];
    static char buf[PAGE];
    atomic_int given = 0;
    pirn_wg wg = {0};
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(fcntl(fd[1], F_SETPIPE_SZ, PAGE), PAGE);
    CHECK_EQ(write(fd[1], much, PAGE), PAGE);
    for (int i = 0; i < WRITERS; i++) {
        pirn_wg_go(&wg, comes_and_goes, fd[1], (int)ROUNDS, &given);
    }
    for (int i = 0; i < WRITERS * ROUNDS / 4; i++) {
        pirn_sleep(30 * PIRN_US);
        CHECK_EQ(pirn_read_full(fd[0], buf, PAGE), PAGE);
    }
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&given), WRITERS * ROUNDS / 4);
    CHECK_EQ(close(fd[1]), 0);
    comes_to_its_end(fd[0]);
    CHECK_EQ(close(fd[0]), 0);
    return 0;
}

TEST_ATTR(come_and_go, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, come_and_go, NULL), 0);
}

/* The last leaves, and while the ring is told to stop another comes. */
static void leaves(int fd, pirn_ns when)
{
    CHECK_EQ(pirn_fd_wait(fd, PIRN_OUT, when), -ETIMEDOUT);
}

static void comes(int fd, pirn_ns when)
{
    pirn_sleep(when - pirn_now());
    CHECK_EQ(pirn_write(fd, much, PAGE), PAGE);
}

static int leave_and_come(void *arg)
{
    (void)arg;
    int fd[2];
    static char buf[PAGE];
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    CHECK_EQ(fcntl(fd[1], F_SETPIPE_SZ, PAGE), PAGE);
    CHECK_EQ(write(fd[1], much, PAGE), PAGE);
    for (int i = 0; i < 200; i++) {
        pirn_wg first = {0}, second = {0};
        pirn_ns when = pirn_now() + 100 * PIRN_US;
        pirn_wg_go(&first, leaves, fd[1], when);
        pirn_wg_go(&second, comes, fd[1], when + i % 20 * 3 * PIRN_US);
        pirn_wg_wait(&first);
        CHECK_EQ(pirn_read_full(fd[0], buf, PAGE), PAGE);
        pirn_wg_wait(&second);
    }
    CHECK_EQ(pirn_close(fd[1]), 0);
    CHECK_EQ(pirn_close(fd[0]), 0);
    return 0;
}

TEST_ATTR(leave_and_come, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, leave_and_come, NULL), 0);
}
