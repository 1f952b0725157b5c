/* SPDX-License-Identifier: MIT */
/*
 * Pirn's own calls while signals rain on all threads whose handler is without SA_RESTART: the kernel interrupts
 * what it can, but no call says -EINTR, and nothing is lost or comes twice (conformance 66; HAZARDS 16). Plain
 * calls in such a storm are in eintr_storm.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "go/busy.h"
#include "go/net.h"
#include "go/storm.h"
#include "temp.h"

#define ROUNDS (TEST_ASAN ? 10 : 25)

/* --- streams: both sides wait for each other ------------------------------------------------------- */

static int pipe_fds[2];
static const size_t in_all = 1 << 20;

static void writes_a_pipe(void)
{
    static unsigned char text[99991]; /* more than a pipe holds */
    for (size_t at = 0; at < in_all;) {
        size_t n = in_all - at < sizeof text ? in_all - at : sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = (unsigned char)((at + i) % 251);
        CHECK_EQ(pirn_write(pipe_fds[1], text, n), n);
        at += n;
    }
    CHECK_EQ(pirn_close(pipe_fds[1]), 0);
}

static void reads_a_pipe(void)
{
    unsigned char text[7001];
    size_t at = 0;
    for (ssize_t n; (n = pirn_read(pipe_fds[0], text, sizeof text)) != 0; at += (size_t)n) {
        CHECK_GT(n, 0);
        for (ssize_t i = 0; i < n; i++)
            CHECK_EQ(text[i], (at + (size_t)i) % 251);
        if (at % 3 == 0)
            CHECK_EQ(pirn_sleep(200 * PIRN_US), 0); /* the writer waits, too */
    }
    CHECK_EQ(at, in_all);
    CHECK_EQ(pirn_close(pipe_fds[0]), 0);
}

/* --- connections ----------------------------------------------------------------------------------- */

static int listener;
static char listens_at[64];

static void asks(int fd, int i)
{
    int got = 0;
    CHECK_EQ(pirn_write(fd, &i, sizeof i), sizeof i);
    CHECK_EQ(pirn_read_full(fd, &got, sizeof got), sizeof got);
    CHECK_EQ(got, ~i);
    CHECK_EQ(pirn_close(fd), 0);
}

static void answers(int fd)
{
    int got;
    CHECK_EQ(pirn_read_full(fd, &got, sizeof got), sizeof got);
    CHECK_EQ(pirn_sleep(PIRN_MS / 2), 0);
    got = ~got;
    CHECK_EQ(pirn_write(fd, &got, sizeof got), sizeof got);
    CHECK_EQ(pirn_close(fd), 0);
}

static void dials(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int fd = pirn_dial("tcp", listens_at);
        CHECK_GE(fd, 0);
        asks(fd, i);
    }
}

static void accepts(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int fd = pirn_accept(listener, NULL, NULL);
        CHECK_GE(fd, 0);
        answers(fd);
    }
}

/* Blocking sockets of the program's own: the kernel waits for who accepts. */
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int blocking_listener;
static atomic_int connects_left, accepts_left;

static void connects(void)
{
    for (int i; (i = atomic_fetch_sub(&connects_left, 1)) > 0;) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_GE(fd, 0);
        CHECK_EQ(pirn_connect(fd, (struct sockaddr *)&address, sizeof address), 0);
        asks(fd, i);
    }
}

static void accepts_where_it_blocks(void)
{
    while (atomic_fetch_sub(&accepts_left, 1) > 0) {
        int fd = pirn_accept(blocking_listener, NULL, NULL);
        CHECK_GE(fd, 0);
        answers(fd);
    }
}

/* --- datagrams ------------------------------------------------------------------------------------- */

static int udp[2];
static struct sockaddr_in udp_at[2];

static void throws_and_catches(int me)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct sockaddr_in from = {0};
        socklen_t len = sizeof from, to = sizeof udp_at[0];
        int got = -1;
        if (me == 0)
            CHECK_EQ(pirn_sendto(udp[0], &i, sizeof i, 0, (struct sockaddr *)&udp_at[1], to),
                     sizeof i);
        CHECK_EQ(pirn_recvfrom(udp[me], &got, sizeof got, 0, (struct sockaddr *)&from, &len),
                 sizeof got);
        CHECK_EQ(got, i);
        CHECK_EQ(from.sin_port, udp_at[!me].sin_port);
        if (me == 1) {
            CHECK_EQ(pirn_sleep(PIRN_MS / 2), 0);
            CHECK_EQ(pirn_sendto(udp[1], &i, sizeof i, 0, (struct sockaddr *)&from, len), sizeof i);
        }
    }
}

/* --- files ----------------------------------------------------------------------------------------- */

static char file_name[TEMP_PATH], fifo_name[TEMP_PATH];

static void uses_a_file(void)
{
    static unsigned char out[50000], in[sizeof out];
    for (int i = 0; i < ROUNDS; i++) {
        int fd = pirn_open(file_name, O_RDWR);
        CHECK_GE(fd, 0);
        memset(out, i, sizeof out);
        CHECK_EQ(pirn_pwrite(fd, out, sizeof out, i * 1000), sizeof out);
        CHECK_EQ(pirn_fsync(fd), 0);
        CHECK_EQ(pirn_pread(fd, in, sizeof in, i * 1000), sizeof in);
        CHECK(memcmp(in, out, sizeof in) == 0);
        CHECK_EQ(pirn_close(fd), 0);
    }
}

static pirn_chan(int) is_read;

/* An open that waits until the other side is there. */
static void opens_to_write(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int fd = pirn_open(fifo_name, O_WRONLY);
        CHECK_GE(fd, 0);
        CHECK_EQ(pirn_write(fd, &i, sizeof i), sizeof i);
        CHECK_EQ(pirn_close(fd), 0);
        CHECK_EQ(pirn_chan_get(is_read), i);
        if (i % 2)
            CHECK_EQ(pirn_sleep(PIRN_MS), 0);
    }
}

static void opens_to_read(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int got[2] = {-1, -1}, fd = pirn_open(fifo_name, O_RDONLY);
        CHECK_GE(fd, 0);
        CHECK_EQ(pirn_read_full(fd, got, sizeof got), sizeof got[0]); /* and then the end */
        CHECK_EQ(got[0], i);
        CHECK_EQ(pirn_close(fd), 0);
        pirn_chan_send(is_read, i);
        if (i % 2 == 0)
            CHECK_EQ(pirn_sleep(PIRN_MS), 0);
    }
}

/* --- the rest -------------------------------------------------------------------------------------- */

static void waits_for_children(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        int status = -1;
        pid_t pid = fork();
        CHECK_GE(pid, 0);
        if (pid == 0) {
            plain_sleep(2 * PIRN_MS);
            _exit(i);
        }
        CHECK_EQ(pirn_wait_pid(pid, &status), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
}

static void sleeps(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        pirn_ns due = pirn_now() + 2 * PIRN_MS;
        CHECK_EQ(pirn_sleep(2 * PIRN_MS), 0);
        CHECK_GE(pirn_now(), due);
    }
}

/* --- all at once ----------------------------------------------------------------------------------- */

static void open_all(void)
{
    CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    listener = pirn_listen("tcp", "127.0.0.1:0");
    CHECK_GE(listener, 0);
    addr_of(listener, listens_at, sizeof listens_at);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "pirn-eintr-calls-%d", getpid());
    blocking_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(blocking_listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(blocking_listener, 1), 0); /* who connects waits for room, too */
    atomic_store(&connects_left, 2 * ROUNDS);
    atomic_store(&accepts_left, 2 * ROUNDS);
    for (int i = 0; i < 2; i++) {
        socklen_t len = sizeof udp_at[i];
        udp[i] = pirn_listen("udp", "127.0.0.1:0");
        CHECK_GE(udp[i], 0);
        CHECK_EQ(getsockname(udp[i], (struct sockaddr *)&udp_at[i], &len), 0);
    }
    temp_path(file_name);
    temp_path(fifo_name);
    CHECK_EQ(unlink(fifo_name), 0);
    CHECK_EQ(mkfifo(fifo_name, 0600), 0);
    is_read = pirn_chan_make(int, 0);
}

static void close_all(void)
{
    CHECK_EQ(pirn_close(listener), 0);
    CHECK_EQ(pirn_close(blocking_listener), 0);
    CHECK_EQ(pirn_close(udp[0]), 0);
    CHECK_EQ(pirn_close(udp[1]), 0);
    CHECK_EQ(unlink(file_name), 0);
    CHECK_EQ(unlink(fifo_name), 0);
    pirn_chan_release(is_read);
}

static int call_all(void *arg)
{
    static void (*const all[])(void) = {
        writes_a_pipe,
        reads_a_pipe,
        dials,
        accepts,
        connects,
        connects,
        accepts_where_it_blocks,
        uses_a_file,
        sleeps,
        accepts_where_it_blocks,
        waits_for_children,
        connects,
    };
    pirn_wg wg = {0};
    open_all();
    storm_begin();
    start_loops(1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        pirn_wg_go(&wg, all[i]);
    pirn_wg_go(&wg, throws_and_catches, 0);
    pirn_wg_go(&wg, throws_and_catches, 1);
    pirn_wg_wait(&wg);
    /* A child that was forked would keep the last round's FIFO open, and the next text would end with it. */
    pirn_wg_go(&wg, opens_to_write);
    pirn_wg_go(&wg, opens_to_read);
    pirn_wg_wait(&wg);
    SLEEP_UNTIL(atomic_load(&usr1s) > 100);
    end_loops();
    storm_end();
    printf("%lu and %lu signals\n", atomic_load(&usr1s), atomic_load(&urgs));
    close_all();
    return arg != NULL;
}

static void in_the_storm(void)
{
    if (test_on_valgrind())
        SKIP("a fork takes seconds under valgrind, and many are made here");
    if (TEST_TSAN)
        SKIP("ThreadSanitizer calls handlers later, and not during the calls");
    storm_handlers(SA_ONSTACK);
    CHECK_EQ(pirn_run(call_all, NULL), 0);
}

TEST_ATTR(calls, PROCS, .timeout = 120, .once = true)
{
    in_the_storm();
}

TEST_ATTR(calls_uring, .procs = "1,4", .env = "PIRN_DEBUG=io=uring", .timeout = 120, .once = true)
{
    in_the_storm();
}

TEST_ATTR(calls_threads, .procs = "1,4", .env = "PIRN_DEBUG=io=epoll", .timeout = 120, .once = true)
{
    in_the_storm();
}
