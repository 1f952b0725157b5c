/* SPDX-License-Identifier: MIT */
/*
 * Numbers that are used again, with io_uring in place of the pollers: what the ring was asked of the file before
 * is cancelled, and may come back late. It tells the next user of the number nothing, and who waits for the
 * next file, in either direction, is told of that.
 */
#include "reuse.h"

#include <sys/syscall.h>

#include "../go/files.h"
#include "io/fd.h"
#include "sched/entry.h"

#define GHOSTS 500 /* numbers that nobody else has */
#define OLD 3      /* readers of the file before */

static const pirn_config ring = {.io = PIRN_IO_URING};

/* That have begun: one that came late would use whoever has the number by then. */
static uint32_t calls_on(int fd)
{
    enter();
    struct pd *pd = pd_get(fd);
    uint64_t word = word_lock(&pd->word);
    uint32_t n = pd->refs;
    word_unlock(&pd->word, word);
    leave();
    return n;
}

/* That have tried to read, and wait. */
static int readers_on(int fd)
{
    int n = 0;
    enter();
    struct pd *pd = pd_get(fd);
    uint64_t word = word_lock(&pd->word);
    for (const struct chan_op *op = pd->q[FD_READ].first; op; op = op->next) {
        n++;
    }
    word_unlock(&pd->word, word);
    leave();
    return n;
}

static void waits(int fd, int events, atomic_int *got)
{
    atomic_store(got, pirn_fd_wait(fd, events, PIRN_NEVER));
}

static void receive_by(int fd, bool watches)
{
    atomic_int got = 0;
    pirn_wg wg = {0};
    if (watches) {
        pirn_wg_go(&wg, waits, fd, (int)PIRN_IN, &got);
    } else {
        pirn_wg_go(&wg, reads, fd, &got);
    }
    pirn_yield();
    send_to(fd);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&got), 1); /* PIRN_IN, or a byte */
}

/* --- closed behind pirn's back -------------------------------------------------------------------------------- */

/* The ring polls it from now on, in both directions, though nobody waits. */
static void ask_of(int fd)
{
    char c;
    CHECK_EQ(pirn_fd_deadline(fd, pirn_now() + PIRN_MS / 10, 0), 0);
    CHECK_EQ(pirn_read(fd, &c, 1), -ETIMEDOUT);
    CHECK_EQ(pirn_fd_wait(fd, PIRN_IN | PIRN_OUT, PIRN_NEVER), PIRN_OUT);
    CHECK_EQ(pirn_fd_deadline(fd, 0, 0), 0);
}

/* The file before lives on under another number, and so does what the ring was asked of it. What comes there
 * before the ring is told to stop, meanwhile, and after, is nobody's. */
static void close_behind_its_back(int i)
{
    struct pair p = tcp_pair();
    atomic_int old[OLD] = {0};
    bool waiting =
        i & 1; /* they are told that it is gone, at the latest when the number is made anew */
    pirn_wg wg = {0};
    ask_of(p.a);
    for (int k = 0; k < OLD && waiting; k++) {
        pirn_wg_go(&wg, reads, p.a, &old[k]);
    }
    SLEEP_UNTIL(readers_on(p.a) == (waiting ? OLD : 0));
    int ghost = fcntl(p.a, F_DUPFD_CLOEXEC, GHOSTS);
    CHECK_GE(ghost, GHOSTS);
    CHECK_EQ(syscall(SYS_close, p.a), 0); /* unseen by tools that call this a race, which it is */
    if (i & 2 && !waiting) {
        CHECK_EQ(write(p.b, "x", 1), 1);
    }
    int fresh = listen_as(p.a);
    if (i & 4) {
        CHECK_EQ(write(p.b, "x", 1), 1);
    }
    pirn_wg_wait(&wg);
    for (int k = 0; k < OLD && waiting; k++) {
        CHECK_EQ(atomic_load(&old[k]), -EBADF);
    }
    if (i & 8) {
        CHECK_EQ(pirn_fd_wait(fresh, PIRN_IN, pirn_now() + PIRN_MS / 2), -ETIMEDOUT);
    }
    receive_by(fresh, false);
    CHECK_EQ(write(p.b, "x", 1), 1);
    CHECK_EQ(pirn_fd_wait(fresh, PIRN_IN, pirn_now() + PIRN_MS / 2), -ETIMEDOUT);
    receive_by(fresh, true);
    CHECK_EQ(pirn_close(fresh), 0);
    CHECK_EQ(close(ghost), 0);
    CHECK_EQ(pirn_close(p.b), 0);
}

static int behind_its_back(void *arg)
{
    (void)arg;
    for (int i = 0; i < 32; i++) {
        close_behind_its_back(i);
    }
    return 0;
}

/* Woken to try again, by a new deadline, they find another file under the number: that is not theirs. On the only P
 * nobody runs in between. */
static int woken_before(void *arg)
{
    (void)arg;
    for (int i = 0; i < 4; i++) {
        struct pair p = tcp_pair();
        atomic_int old[OLD] = {0}, watched = 0;
        pirn_wg wg = {0};
        for (int k = 0; k < OLD; k++) {
            pirn_wg_go(&wg, reads, p.a, &old[k]);
        }
        pirn_wg_go(&wg, waits, p.a, (int)PIRN_IN, &watched);
        SLEEP_UNTIL(readers_on(p.a) == OLD + 1);
        CHECK_EQ(pirn_fd_deadline(p.a, pirn_now() + 3600 * PIRN_SEC, 0), 0);
        CHECK_EQ(readers_on(p.a), 0);
        CHECK_EQ(syscall(SYS_close, p.a), 0);
        int fresh = listen_as(p.a);
        pirn_wg_wait(&wg);
        for (int k = 0; k < OLD; k++) {
            CHECK_EQ(atomic_load(&old[k]), -EBADF);
        }
        CHECK_EQ(atomic_load(&watched), -EBADF);
        receive_by(fresh, false);
        CHECK_EQ(pirn_close(fresh), 0);
        CHECK_EQ(pirn_close(p.b), 0);
    }
    return 0;
}

TEST_ATTR(woken_before_it_is_closed, .procs = "1")
{
    CHECK_EQ(pirn_run_config(&ring, woken_before, NULL), 0);
    CHECK_EQ(pirn_run_config(&(pirn_config){.io = PIRN_IO_EPOLL}, woken_before, NULL), 0);
}

/* pirn_close wakes who waits, though libc has closed the number before. */
static int closed_twice(void *arg)
{
    (void)arg;
    for (int i = 0; i < 4; i++) {
        struct pair p = tcp_pair();
        atomic_int old[OLD] = {0};
        pirn_wg wg = {0};
        for (int k = 0; k < OLD; k++) {
            pirn_wg_go(&wg, reads, p.a, &old[k]);
        }
        SLEEP_UNTIL(readers_on(p.a) == OLD);
        CHECK_EQ(syscall(SYS_close, p.a), 0);
        CHECK_EQ(pirn_close(p.a), -EBADF);
        pirn_wg_wait(&wg);
        for (int k = 0; k < OLD; k++) {
            CHECK_EQ(atomic_load(&old[k]), -EBADF);
        }
        int fresh = listen_as(p.a);
        receive_by(fresh, true);
        CHECK_EQ(pirn_close(fresh), 0);
        CHECK_EQ(pirn_close(p.b), 0);
    }
    return 0;
}

TEST_ATTR(closed_by_libc_and_pirn, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, closed_twice, NULL), 0);
    CHECK_EQ(pirn_run_config(&(pirn_config){.io = PIRN_IO_EPOLL}, closed_twice, NULL), 0);
}

TEST_ATTR(closed_by_libc, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, behind_its_back, NULL), 0);
}

/* --- closed by pirn ------------------------------------------------------------------------------------------- */

/*
 * Each has sockets that several wait for in both directions, closes one while its peer makes news, and others
 * have its number at once, for what they wait for in turn. All of it goes through the same few numbers.
 */
static void makes_news(int fd, atomic_bool *over)
{
    char c;
    while (!atomic_load(over)) {
        if (send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            recv(fd, &c, 1, MSG_DONTWAIT);
        }
        pirn_sleep(20 * PIRN_US);
    }
}

static void reads_once(int fd)
{
    char c;
    ssize_t r = pirn_read(fd, &c, 1);
    CHECK(r == 1 || r == -EBADF);
}

static void writes_once(int fd)
{
    static const char bytes[1000000];
    CHECK_NE(pirn_write(fd, bytes, sizeof bytes), sizeof bytes);
}

static void quiet_one(bool adopted)
{
    int fd[2];
    atomic_int got = 0;
    pirn_wg wg = {0};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    if (adopted) {
        CHECK_EQ(pirn_fd_adopt(fd[0]), 0);
    }
    CHECK_EQ(pirn_fd_wait(fd[0], PIRN_IN, pirn_now() + PIRN_MS / 5), -ETIMEDOUT);
    pirn_wg_go(&wg, reads, fd[0], &got);
    pirn_yield();
    CHECK_EQ(atomic_load(&got), 0);
    CHECK_EQ(pirn_write(fd[1], "y", 1), 1);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&got), 1);
    CHECK_EQ(pirn_close(fd[0]), 0);
    CHECK_EQ(pirn_close(fd[1]), 0);
}

static void loud_one(int i)
{
    enum { READERS = 3 };
    int fd[2];
    atomic_bool over = false;
    pirn_wg users = {0}, peer = {0};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    if (i & 1) {
        CHECK_EQ(pirn_fd_adopt(fd[0]), 0);
    }
    for (int k = 0; k < READERS; k++) {
        pirn_wg_go(&users, reads_once, fd[0]);
    }
    pirn_wg_go(&users, writes_once, fd[0]);
    SLEEP_UNTIL(calls_on(fd[0]) == READERS + 1);
    pirn_wg_go(&peer, makes_news, fd[1], &over);
    if (i & 2) {
        pirn_sleep(30 * PIRN_US);
    }
    CHECK_EQ(pirn_close(fd[0]), 0);
    quiet_one(i & 4);
    pirn_wg_wait(&users);
    quiet_one(i & 4);
    atomic_store(&over, true);
    pirn_wg_wait(&peer);
    CHECK_EQ(pirn_close(fd[1]), 0);
}

static void loud_ones(int n)
{
    for (int i = 0; i < n; i++) {
        loud_one(i);
    }
}

static int numbers_in_a_circle(void *arg)
{
    (void)arg;
    pirn_wg wg = {0};
    for (int i = 0; i < 3; i++) {
        pirn_wg_go(&wg, loud_ones, 16);
    }
    pirn_wg_wait(&wg);
    return 0;
}

TEST_ATTR(closed_by_pirn, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, numbers_in_a_circle, NULL), 0);
}

/* --- of the program's own: the same number, another file, from one call to the next --------------------------- */

static int another_file_each_time(void *arg)
{
    (void)arg;
    int number = fcntl(0, F_DUPFD_CLOEXEC, GHOSTS);
    CHECK_GE(number, 0);
    for (int i = 0; i < 60; i++) {
        int fd[2];
        char c;
        atomic_int got = 0;
        pirn_wg wg = {0};
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        CHECK_EQ(dup3(fd[0], number, O_CLOEXEC), number); /* and the one before is closed */
        CHECK_EQ(close(fd[0]), 0);
        switch (
            i % 3) { /* told once, and cancelled; cancelled before it began; told again and again */
        case 0:
            pirn_wg_go(&wg, reads, number, &got);
            let_wait();
            CHECK_EQ(write(fd[1], "xy", 2), 2);
            pirn_wg_wait(&wg);
            CHECK_EQ(atomic_load(&got), 1);
            CHECK_EQ(pirn_read(number, &c, 1), 1);
            break;
        case 1:
            CHECK_EQ(pirn_fd_wait(number, PIRN_IN, pirn_now() + i * PIRN_US), -ETIMEDOUT);
            break;
        case 2:
            for (int k = 0; k < 3; k++) {
                pirn_wg_go(&wg, reads, number, &got);
            }
            for (int k = 0; k < 3; k++) {
                pirn_sleep(PIRN_MS / 10);
                CHECK_EQ(write(fd[1], "x", 1), 1);
            }
            pirn_wg_wait(&wg);
            break;
        }
        CHECK_EQ(pirn_fd_wait(number, PIRN_IN, pirn_now() + PIRN_MS / 10), -ETIMEDOUT);
        CHECK_EQ(close(fd[1]), 0);
        CHECK_EQ(pirn_read(number, &c, 1), 0);
    }
    CHECK_EQ(close(number), 0);
    return 0;
}

TEST_ATTR(another_file, PROCS)
{
    CHECK_EQ(pirn_run_config(&ring, another_file_each_time, NULL), 0);
}
