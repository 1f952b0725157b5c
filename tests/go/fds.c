/* SPDX-License-Identifier: MIT */
/* Descriptors as cases of a select, and the descriptor of a channel. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <pirn.h>

#include "harness.h"
#include "idle.h"

#define PROCS .procs = "1,2,4,16"

struct ends {
    int in, out;
};

static struct ends make_pipe(void)
{
    int fd[2];
    CHECK_EQ(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
    return (struct ends){fd[0], fd[1]};
}

static void close_pipe(struct ends p)
{
    close(p.in);
    close(p.out);
}

static void put(int fd)
{
    CHECK_EQ(write(fd, "x", 1), 1);
}

static void take(int fd)
{
    char c;
    CHECK_EQ(read(fd, &c, 1), 1);
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* --- ready, and not ready ----------------------------------------------------------------------------- */

TEST_RUN_ATTR(ready_at_once, PROCS)
{
    struct ends p = make_pipe();
    pirn_chan(int) c = pirn_chan_make(int, 1);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(pirn_select(PIRN_READABLE(p.in), PIRN_DEFAULT), 1);
    CHECK_EQ(pirn_select(PIRN_WRITABLE(p.out), PIRN_DEFAULT), 0);
    CHECK_EQ(pirn_select(PIRN_READABLE(p.in), PIRN_WRITABLE(p.out)), 1);
    CHECK_EQ(pirn_select(PIRN_READABLE(p.in), PIRN_AFTER(PIRN_MS)), 1);
    put(p.out);
    CHECK_EQ(pirn_select(PIRN_READABLE(p.in), PIRN_RECV(c, NULL)), 0);
    CHECK_EQ(pirn_select(PIRN_READABLE(p.in), PIRN_DEFAULT), 0); /* it is not consumed */
    take(p.in);
    CHECK_EQ(pirn_select(PIRN_READABLE(p.in), PIRN_SEND(c, 1)), 1);
    CHECK_EQ(pirn_select(PIRN_READABLE(file)), 0); /* a plain file always is */
    close(file);
    CHECK_EQ(pirn_select(PIRN_READABLE(file), PIRN_AFTER(PIRN_SEC)), 0); /* as poll() says */
    CHECK_EQ(pirn_select(PIRN_READABLE(-1)), 0); /* and one that never was, else it would wait */
    CHECK_EQ(pirn_select(PIRN_WRITABLE(-1)), 0);
    close_pipe(p);
    pirn_chan_release(c);
}

/* Ready cases are chosen fairly, descriptors among them. */
TEST_RUN_ATTR(fair, PROCS)
{
    struct ends p = make_pipe();
    pirn_chan(int) c = pirn_chan_make(int, 0);
    int n[3] = {0};
    pirn_chan_close(c);
    for (int i = 0; i < 3000; i++)
        n[pirn_select(PIRN_RECV(c, NULL), PIRN_WRITABLE(p.out), PIRN_WRITABLE(p.out))]++;
    for (int i = 0; i < 3; i++)
        CHECK(n[i] > 700 && n[i] < 1300);
    close_pipe(p);
    pirn_chan_release(c);
}

/* --- waiting --------------------------------------------------------------------------------------------- */

enum { ROUNDS = TEST_TSAN ? 100 : 500 };

static void echo(int in, int out)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(pirn_select(PIRN_READABLE(in)), 0);
        take(in);
        put(out);
    }
}

TEST_RUN_ATTR(to_and_fro, PROCS)
{
    struct ends a = make_pipe(), b = make_pipe();
    pirn_chan(int) never = pirn_chan_make(int, 0);
    pirn_wg wg = {0};
    pirn_wg_go(&wg, echo, a.in, b.out);
    for (int i = 0; i < ROUNDS; i++) {
        put(a.out);
        CHECK_EQ(
            pirn_select(PIRN_RECV(never, NULL), PIRN_READABLE(b.in), PIRN_AFTER(100 * PIRN_SEC)),
            1);
        take(b.in);
    }
    pirn_wg_wait(&wg);
    pirn_chan_release(never);
    close_pipe(a);
    close_pipe(b);
}

/* Many wait for one descriptor, in both directions; each wake-up is true for all of them. */
static void reads_until_closed(int fd, atomic_int *got)
{
    for (;;) {
        char c;
        CHECK_EQ(pirn_select(PIRN_READABLE(fd)), 0);
        ssize_t n = read(fd, &c, 1);
        if (n == 0)
            return;
        if (n == 1)
            atomic_fetch_add(got, 1);
    }
}

TEST_RUN_ATTR(many_wait_for_one, PROCS)
{
    struct ends p = make_pipe();
    atomic_int got = 0;
    pirn_wg wg = {0};
    for (int i = 0; i < 20; i++)
        pirn_wg_go(&wg, reads_until_closed, p.in, &got);
    for (int i = 0; i < 50; i++) {
        put(p.out);
        pirn_yield();
    }
    close(p.out); /* end of file, for all */
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&got), 50);
    close(p.in);
}

/* Won by a channel, by the time, by a descriptor, by a context, at random and together. */
static void sends(pirn_chan(int) c, int n)
{
    for (int i = 0; i < n; i++)
        pirn_chan_send(c, 1);
}

static void puts_all(int fd, int n)
{
    for (int i = 0; i < n; i++) {
        while (write(fd, "x", 1) != 1)
            CHECK_EQ(pirn_select(PIRN_WRITABLE(fd)), 0);
        if (i % 16 == 0)
            pirn_yield();
    }
}

TEST_RUN_ATTR(everything_at_once, PROCS)
{
    enum { N = TEST_TSAN ? 100 : 1000 };
    struct ends p = make_pipe();
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_wg wg = {0};
    int chan = 0, bytes = 0;
    pirn_wg_go(&wg, sends, c, N);
    pirn_wg_go(&wg, puts_all, p.out, N);
    while (chan < N || bytes < N) {
        switch (pirn_select(PIRN_RECV(c, NULL), PIRN_READABLE(p.in), PIRN_AFTER(50 * PIRN_US),
                            PIRN_DONE(ctx))) {
        case 0: chan++; break;
        case 1: take(p.in), bytes++; break;
        case 2: break;
        default: CHECK(false);
        }
    }
    pirn_wg_wait(&wg);
    pirn_ctx_cancel(ctx, 0);
    CHECK_EQ(pirn_select(PIRN_READABLE(p.in), PIRN_DONE(ctx)), 1);
    pirn_ctx_release(ctx);
    pirn_chan_release(c);
    close_pipe(p);
}

/* More cases than fit in the frame of the call. */
TEST_RUN_ATTR(many_cases, PROCS)
{
    enum { N = 40 };
    struct ends p[N];
    pirn_case cases[N + 1];
    pirn_wg wg = {0};
    for (int i = 0; i < N; i++) {
        p[i] = make_pipe();
        cases[i] = (pirn_case)PIRN_READABLE(p[i].in);
    }
    cases[N] = (pirn_case){0};
    for (int i = 0; i < N; i++) {
        pirn_wg_go(&wg, put, p[i].out);
        CHECK_EQ(pirn_selectv(cases, N + 1), i);
        take(p[i].in);
        pirn_wg_wait(&wg);
    }
    for (int i = 0; i < N; i++)
        close_pipe(p[i]);
}

/* --- threads, and the end of the runtime ------------------------------------------------------------------ */

static void put_later(int fd)
{
    CHECK_EQ(pirn_sleep(5 * PIRN_MS), 0);
    put(fd);
}

static void *selects_in_thread(void *arg)
{
    struct ends *p = arg;
    CHECK_EQ(pirn_select(PIRN_READABLE(p->in), PIRN_AFTER(PIRN_MS)), 1);
    pirn_go(put_later, p->out);
    CHECK_EQ(pirn_select(PIRN_READABLE(p->in), PIRN_AFTER(100 * PIRN_SEC)), 0);
    take(p->in);
    return NULL;
}

TEST_ATTR(threads, PROCS)
{
    struct ends p = make_pipe();
    pthread_t thread;
    CHECK_EQ(pirn_start(&(pirn_config){0}), 0);
    pthread_create(&thread, NULL, selects_in_thread, &p);
    pthread_join(thread, NULL);
    CHECK_EQ(pirn_stop(), 0);
    close_pipe(p);
}

static void waits_for_ever(int fd, atomic_int *begun)
{
    atomic_fetch_add(begun, 1);
    pirn_select(PIRN_READABLE(fd), PIRN_AFTER(1000 * PIRN_SEC));
    CHECK(false);
}

static int leaves_waiters(void *arg)
{
    int *fd = arg;
    atomic_int begun = 0;
    for (int i = 0; i < 10; i++)
        pirn_go(waits_for_ever, *fd, &begun);
    while (atomic_load(&begun) < 10)
        pirn_yield();
    return 0;
}

TEST_ATTR(dropped_at_the_end, PROCS)
{
    struct ends p = make_pipe();
    for (int i = 0; i < 20; i++)
        CHECK_EQ(pirn_run(leaves_waiters, &p.in), 0);
    close_pipe(p);
}

/* --- the descriptor of a channel ---------------------------------------------------------------------------- */

TEST_RUN_ATTR(fd_of_a_channel, PROCS)
{
    pirn_chan(int) c = pirn_chan_make(int, 2);
    pirn_chan_send(c, 1);
    int fd = pirn_chan_fd(c);
    CHECK(fd >= 0);
    CHECK_EQ(pirn_chan_fd(c), fd);
    CHECK(is_readable(fd));
    pirn_chan_send(c, 2);
    CHECK_EQ(pirn_chan_get(c), 1);
    CHECK(is_readable(fd));
    CHECK_EQ(pirn_chan_get(c), 2);
    CHECK(!is_readable(fd));
    CHECK_EQ(pirn_chan_try_send(c, 3), 1);
    CHECK(is_readable(fd));
    CHECK_EQ(pirn_chan_try_recv(c, NULL), 1);
    CHECK(!is_readable(fd));
    pirn_chan_close(c);
    CHECK(is_readable(fd));
    CHECK_EQ(pirn_chan_try_recv(c, NULL), -1);
    CHECK(is_readable(fd));
    pirn_chan_release(c);
    CHECK_EQ(fcntl(fd, F_GETFD), -1); /* it went with the channel */
}

static void sends_one(pirn_chan(int) c, int v)
{
    pirn_chan_send(c, v);
}

static void selects_to_send(pirn_chan(int) c, pirn_chan(int) d)
{
    CHECK_EQ(pirn_select(PIRN_SEND(c, 9), PIRN_RECV(d, NULL)), 1);
}

/* A sender that waits, and one that gives up. */
TEST_RUN_ATTR(fd_of_senders, PROCS)
{
    pirn_chan(int) c = pirn_chan_make(int, 0), d = pirn_chan_make(int, 0);
    pirn_wg wg = {0};
    int fd = pirn_chan_fd(c);
    CHECK(!is_readable(fd));
    pirn_wg_go(&wg, sends_one, c, 7);
    CHECK_EQ(pirn_select(PIRN_READABLE(fd)), 0);
    CHECK_EQ(pirn_chan_get(c), 7);
    CHECK(!is_readable(fd));
    pirn_wg_wait(&wg);
    pirn_wg_go(&wg, selects_to_send, c, d);
    CHECK_EQ(pirn_select(PIRN_READABLE(fd)), 0);
    pirn_chan_send(d, 1);
    pirn_wg_wait(&wg);
    CHECK(!is_readable(fd));
    pirn_chan_release(c);
    pirn_chan_release(d);
}

static void produces(pirn_chan(int) c, int n)
{
    for (int i = 1; i <= n; i++)
        pirn_chan_send(c, i);
    pirn_chan_close(c);
}

/* What it is for: a thread with a main loop of its own. */
TEST_ATTR(main_loop, PROCS)
{
    enum { N = TEST_TSAN ? 200 : 2000 };
    CHECK_EQ(pirn_start(&(pirn_config){0}), 0);
    for (int cap = 0; cap < 3; cap++) {
        pirn_chan(int) c = pirn_chan_make(int, cap);
        int sum = 0, v, r = 0, loop = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event ev = {.events = EPOLLIN};
        CHECK_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, pirn_chan_fd(c), &ev), 0);
        pirn_go(produces, c, N);
        while (r >= 0) {
            CHECK_EQ(epoll_wait(loop, &ev, 1, -1), 1);
            while ((r = pirn_chan_try_recv(c, &v)) == 1)
                sum += v;
        }
        CHECK_EQ(sum, N * (N + 1) / 2);
        close(loop);
        pirn_chan_release(c);
    }
    CHECK_EQ(pirn_stop(), 0);
}

/* A timer's channel too. */
TEST_RUN_ATTR(fd_of_a_timer, PROCS)
{
    pirn_chan(pirn_ns) c = pirn_after(5 * PIRN_MS);
    int fd = pirn_chan_fd(c);
    CHECK_EQ(pirn_select(PIRN_READABLE(fd)), 0);
    CHECK_EQ(pirn_chan_try_recv(c, NULL), 1);
    CHECK(!is_readable(fd));
    pirn_chan_release(c);
}

/* --- few descriptors --------------------------------------------------------------------------------------- */

static rlim_t set_limit(rlim_t n)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = n;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

/* Without a descriptor the caller is told, and may try again. */
TEST_RUN_ATTR(no_more_descriptors, PROCS)
{
    pirn_chan(int) c = pirn_chan_make(int, 1);
    rlim_t before = set_limit(0);
    CHECK_EQ(pirn_chan_fd(c), -EMFILE);
    set_limit(before);
    struct pollfd p = {.fd = pirn_chan_fd(c), .events = POLLIN};
    CHECK(p.fd >= 0);
    CHECK_EQ(poll(&p, 1, 0), 0);
    pirn_chan_send(c, 1);
    CHECK_EQ(poll(&p, 1, 0), 1);
    pirn_chan_release(c);
}

static atomic_int begun, seen;

static void waits_for_both(int in, int out)
{
    atomic_fetch_add(&begun, 1);
    CHECK_EQ(pirn_select(PIRN_READABLE(in), PIRN_WRITABLE(out)), 0);
    atomic_fetch_add(&seen, 1);
}

/* Returns when all that have been started, n so far, wait. */
static void start_waits(pirn_wg *wg, int in, int out, int n)
{
    for (int i = atomic_load(&begun); i < n; i++)
        pirn_wg_go(wg, waits_for_both, in, out);
    while (atomic_load(&begun) < n)
        sched_yield();
    wait_until_idle();
}

static void fill(int fd)
{
    char page[4096] = {0};
    while (write(fd, page, sizeof page) > 0) {
    }
}

static void waits_in_vain(int fd)
{
    CHECK_EQ(pirn_fd_wait(fd, PIRN_IN, pirn_now() + 20 * PIRN_MS), -ETIMEDOUT);
}

static void selects_in_vain(int fd)
{
    CHECK_EQ(pirn_select(PIRN_READABLE(fd), PIRN_UNTIL(pirn_now() + 20 * PIRN_MS)), 1);
}

/* That one who waited has given up, or failed, makes nothing ready for those who watch. */
TEST_RUN_ATTR(others_end, PROCS)
{
    char c;
    int fd[2];
    pirn_wg wg = {0};
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    pirn_wg_go(&wg, waits_in_vain, fd[0]);
    pirn_wg_go(&wg, selects_in_vain, fd[0]);
    pirn_sleep(2 * PIRN_MS);
    CHECK_EQ(pirn_fd_wait(fd[0], PIRN_IN, pirn_now() + PIRN_MS), -ETIMEDOUT);
    CHECK_EQ(pirn_pread(fd[0], &c, 1, 0), -ESPIPE);
    pirn_wg_wait(&wg);
    close(fd[0]);
    close(fd[1]);
}

/* More waits than descriptors: poll() would refuse so many. Then fewer may be open than are. */
TEST_ATTR(more_waits_than_descriptors, PROCS)
{
    enum { N = 100 };
    struct ends p = make_pipe(), full = make_pipe(), late = make_pipe();
    pirn_wg wg = {0};
    CHECK_EQ(pirn_start(NULL), 0);
    fill(full.out);
    rlim_t before = set_limit(64);
    start_waits(&wg, p.in, full.out, N);
    CHECK_EQ(atomic_load(&seen), 0);
    put(p.out);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&seen), N);
    set_limit(2);
    start_waits(&wg, late.in, full.out, N + 1);
    CHECK_EQ(atomic_load(&seen), N);
    put(late.out);
    pirn_wg_wait(&wg);
    set_limit(before);
    CHECK_EQ(pirn_stop(), 0);
    close_pipe(p);
    close_pipe(full);
    close_pipe(late);
}

static void puts_later(int fd)
{
    pirn_sleep(2 * PIRN_MS);
    put(fd);
}

static bool poller_has_zero;

static int waits_for_one(void *arg)
{
    struct ends *p = arg;
    pirn_wg wg = {0};
    CHECK_EQ(pirn_select(PIRN_READABLE(p->in), PIRN_AFTER(PIRN_MS)), 1);
    poller_has_zero |= fcntl(0, F_GETFD) >= 0;
    pirn_wg_go(&wg, puts_later, p->out);
    CHECK_EQ(pirn_select(PIRN_READABLE(p->in)), 0);
    pirn_wg_wait(&wg);
    return 0;
}

static void run_without_stdin(void *arg)
{
    (void)arg;
    struct ends p = make_pipe();
    close(0);
    /* The runtime looks at files of its own for a moment, and one of them may have been 0 just then. */
    for (int i = 0; i < 100 && !poller_has_zero; i++) {
        CHECK_EQ(pirn_run(waits_for_one, &p), 0);
        take(p.in);
    }
    CHECK(poller_has_zero);
}

/* A program without a standard input: 0 is a descriptor like the others. */
TEST_ATTR(descriptor_zero, PROCS)
{
    CHECK_EQ(test_in_child(run_without_stdin, NULL), 0);
}

static void puts_and_sends(int fd, pirn_chan(int) c)
{
    for (int i = 0; i < ROUNDS; i++) {
        put(fd);
        pirn_chan_send(c, i);
    }
}

/* What an earlier poll has seen means nothing to a select that came after it. */
TEST_RUN_ATTR(no_stale_readiness, PROCS)
{
    struct ends p = make_pipe();
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_wg wg = {0};
    pirn_wg_go(&wg, puts_and_sends, p.out, c);
    for (int i = 0; i < ROUNDS; i++) {
        int v = -1;
        if (pirn_select(PIRN_READABLE(p.in), PIRN_RECV(c, &v)) == 0) {
            take(p.in);
            CHECK_EQ(pirn_select(PIRN_READABLE(p.in), PIRN_RECV(c, &v)), 1);
        } else {
            take(p.in);
            struct pollfd fd = {.fd = p.in, .events = POLLIN};
            if (pirn_select(PIRN_READABLE(p.in), PIRN_AFTER(20 * PIRN_US)) == 0)
                CHECK_EQ(poll(&fd, 1, 0), 1); /* the next one's */
        }
        CHECK_EQ(v, i);
    }
    pirn_wg_wait(&wg);
    pirn_chan_release(c);
    close_pipe(p);
}
