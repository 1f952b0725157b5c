/* SPDX-License-Identifier: MIT */
/*
 * Files, names and children where something fails: io_uring and pidfds are forbidden, threads can't be made,
 * and each system call fails at its N-th time.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "fault/deny.h"
#include "fault/fail.h"
#include "go/files.h"

enum { PAGE = 4096 };

static at_u32 no_threads;

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (at_load(&no_threads, RELAXED)) {
        return EAGAIN;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(t, attr, fn, arg);
}

static void set_no_threads(bool on)
{
    at_store(&no_threads, on, RELAXED);
}

static pid_t child(int code)
{
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0)
        _exit(code);
    return pid;
}

static void reads_cold(int fd, int i)
{
    unsigned char buf[PAGE];
    CHECK_EQ(pirn_pread(fd, buf, PAGE, (off_t)i * PAGE), PAGE);
    check_bytes(buf, PAGE, (size_t)i * PAGE);
    CHECK_EQ(pirn_fdatasync(fd), 0);
}

static void reads_a_byte(int fd)
{
    char c;
    CHECK_EQ(pirn_read(fd, &c, 1), 1);
}

/* Who waits for a descriptor is told. */
static bool can_wait = true; /* not without eventfds: then the call would say so */

static void waits(void)
{
    int p[2];
    pirn_wg wg = {0};
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    pirn_wg_go(&wg, reads_a_byte, p[0]);
    pirn_sleep(PIRN_MS);
    CHECK_EQ(pirn_write(p[1], "x", 1), 1);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_close(p[0]), 0);
    CHECK_EQ(pirn_close(p[1]), 0);
}

/* What a descriptor says itself stays as it is; and no SIGPIPE. */
static void true_answers(void)
{
    char c = 'x';
    int p[2], sealed = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_EQ(fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE), 0);
    CHECK_EQ(pirn_write(sealed, &c, 1), -EPERM);
    CHECK_EQ(pirn_read(sealed, &c, 1), 0);
    CHECK_EQ(pirn_close(sealed), 0);
    CHECK_EQ(pirn_write(sealed, &c, 1), -EBADF);
    CHECK_EQ(pirn_read(sealed, &c, 1), -EBADF);
    CHECK_EQ(pirn_pread(sealed, &c, 1, 0), -EBADF);
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    CHECK_EQ(pirn_close(p[0]), 0);
    CHECK_EQ(pirn_write(p[1], &c, 1), -EPIPE);
    CHECK_EQ(pirn_close(p[1]), 0);
}

static int all_calls(void *arg)
{
    (void)arg;
    if (can_wait) {
        waits();
        true_answers();
    }
    int fd = temp_file(0), status;
    pirn_wg wg = {0};
    write_file(fd, 16 * PAGE);
    drop_cache(fd);
    for (int i = 0; i < 16; i++)
        pirn_wg_go(&wg, reads_cold, fd, i);
    pirn_wg_wait(&wg);
    CHECK_EQ(pirn_pwrite(fd, "x", 1, 0), 1);
    close(fd);
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background()), *old = pirn_ctx_use(ctx);
    fd = pirn_open("/etc", O_RDONLY);
    CHECK_GE(fd, 0);
    close(fd);
    pirn_ctx_use(old);
    pirn_ctx_release(ctx);
    pid_t pid = child(5);
    CHECK_EQ(pirn_wait_pid(pid, &status), pid);
    CHECK_EQ(WEXITSTATUS(status), 5);
    return 1;
}

/* --- forbidden -------------------------------------------------------------------------------------------- */

static void run_both(void *arg)
{
    (void)arg;
    CHECK_EQ(pirn_run_config(&(pirn_config){.io = PIRN_IO_URING}, all_calls, NULL), 1);
    CHECK_EQ(pirn_run(all_calls, NULL), 1);
}

static void without(unsigned nr, unsigned err, const char *says)
{
    needs_filters();
    deny(nr, err);
    int status = test_in_child(run_both, NULL);
    if (status)
        printf("%s", test_said);
    CHECK_EQ(status, 0);
    if (says && PIRN_HAVE_LIBURING)
        CHECK(strstr(test_said, says) != NULL);
    else if (says)
        CHECK(strstr(test_said, "pirn: io_uring is not used (not in this build)") != NULL);
    else
        CHECK_STR(test_said, "");
}

#define SAYS .procs = "1,4", .env = "PIRN_DEBUG=io=1"

TEST_ATTR(io_uring_is_denied, SAYS)
{
    without(SYS_io_uring_setup, EPERM, "pirn: io_uring is not used (Operation not permitted)");
}

TEST_ATTR(there_is_no_io_uring, SAYS)
{
    without(SYS_io_uring_setup, ENOSYS, "pirn: io_uring is not used (Function not implemented)");
}

TEST_ATTR(io_uring_can_be_made_but_not_used, SAYS)
{
    without(SYS_io_uring_enter, EPERM, "pirn: io_uring is not used (Operation not permitted)");
}

TEST_ATTR(io_uring_can_not_be_asked, SAYS)
{
    without(SYS_io_uring_register, EPERM, "pirn: io_uring is not used (Operation not permitted)");
}

TEST_ATTR(nothing_is_said_unasked, .procs = "1,4")
{
    without(SYS_io_uring_setup, EPERM, NULL);
}

TEST_ATTR(no_rwf_nowait, .procs = "1,4")
{
    without(SYS_preadv2, EOPNOTSUPP, NULL);
}

/* As a filter says it that knows nothing of them. */
TEST_ATTR(reads_with_flags_are_denied, .procs = "1,4")
{
    without(SYS_preadv2, EPERM, NULL);
}

TEST_ATTR(writes_with_flags_are_denied, .procs = "1,4")
{
    without(SYS_pwritev2, EPERM, NULL);
}

TEST_ATTR(no_writes_with_flags, .procs = "1,4")
{
    without(SYS_pwritev2, ENOSYS, NULL);
}

TEST_ATTR(no_pidfds, .procs = "1,4")
{
    without(SYS_pidfd_open, ENOSYS, NULL);
}

TEST_ATTR(pidfds_are_denied, .procs = "1,4")
{
    without(SYS_pidfd_open, EPERM, NULL);
}

TEST_ATTR(no_eventfds, .procs = "1,4")
{
    can_wait = false;
    without(SYS_eventfd2, EMFILE, NULL);
}

/* --- no threads --------------------------------------------------------------------------------------------- */

static at_u32 lookups;

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **res)
{
    (void)service;
    if (!hints || hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    at_add(&lookups, 1, RELAXED);
    plain_sleep(PIRN_MS);
    *res = calloc(1, sizeof **res);
    (*res)->ai_canonname = strdup(host);
    return 0;
}

static void asks(const char *host)
{
    struct addrinfo *res;
    CHECK_EQ(pirn_resolve(host, NULL, NULL, &res), 0);
    CHECK_STR(res->ai_canonname, host);
    pirn_resolve_free(res);
}

static void opens_in(pirn_ctx *ctx)
{
    pirn_ctx *old = pirn_ctx_use(ctx);
    int fd = pirn_open("/etc", O_RDONLY);
    CHECK_GE(fd, 0);
    close(fd);
    pirn_ctx_use(old);
}

static int without_helpers(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    set_no_threads(true);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++) {
            pirn_wg_go(&wg, asks, i % 2 ? "one" : "two");
            pirn_wg_go(&wg, opens_in, ctx);
        }
        pirn_wg_wait(&wg);
    }
    pirn_ctx_release(ctx);
    set_no_threads(false);
    CHECK_GE(at_load(&lookups, RELAXED), 6);
    asks("three"); /* and now there are some */
    return 1;
}

static void run_without_helpers(void *arg)
{
    (void)arg;
    CHECK_EQ(pirn_run(without_helpers, NULL), 1);
}

TEST_ATTR(no_helpers, .procs = "1,4", .env = "PIRN_DEBUG=io=epoll")
{
    CHECK_EQ(test_in_child(run_without_helpers, NULL), 0);
}

/* --- the N-th call fails --------------------------------------------------------------------------------------- */

struct sweep {
    uint64_t which;
    int err;
    bool retried; /* the caller does not see it */
};

static const struct sweep sweeps[] = {
    {CALL(PREAD_NOWAIT), EINTR, true},   {CALL(PREAD_NOWAIT), EOPNOTSUPP, true},
    {CALL(PREAD_NOWAIT), EAGAIN, true},  {CALL(PREAD_NOWAIT), EIO, false},
    {CALL(PREAD), EINTR, true},          {CALL(PREAD), EIO, false},
    {CALL(PWRITE), EINTR, true},         {CALL(PWRITE), ENOSPC, false},
    {CALL(FSYNC), EINTR, true},          {CALL(FSYNC), EIO, false},
    {CALL(OPEN), EINTR, true},           {CALL(OPEN), EMFILE, false},
    {CALL(SENDFILE), EINTR, true},       {CALL(SENDFILE), EAGAIN, true},
    {CALL(SENDFILE), ECONNRESET, false}, {CALL(PIDFD_OPEN), EMFILE, true},
    {CALL(PIDFD_OPEN), ENOMEM, true},    {CALL(WAITPID), EINTR, true},
};

/* What of it failed, with this error. */
static int use_all(int err)
{
    int failed = 0, fds[2];
    unsigned char buf[2 * PAGE];
    off_t at = 0;
#define TRY(expr, want)                                                                            \
    do {                                                                                           \
        long r_ = (expr);                                                                          \
        CHECK(r_ == (want) || r_ == -err || (r_ > 0 && r_ < (want)));                              \
        failed += r_ != (want);                                                                    \
    } while (0)
    int fd = temp_file(0);
    write_file(fd, 4 * PAGE);
    for (int cold = 0; cold < 2; cold++) {
        TRY(pirn_pread(fd, buf, sizeof buf, 0), (long)sizeof buf);
        TRY(pirn_pread(fd, buf, sizeof buf, 4 * PAGE), 0);
        TRY(pirn_pwrite(fd, buf, PAGE, 0), PAGE);
        TRY(pirn_fsync(fd), 0);
        drop_cache(fd);
    }
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    TRY(pirn_sendfile(fds[0], fd, &at, PAGE), PAGE);
    close(fds[0]);
    close(fds[1]);
    close(fd);
    fd = pirn_open("/etc", O_RDONLY);
    CHECK(fd >= 0 || fd == -err);
    failed += fd < 0;
    if (fd >= 0)
        close(fd);
    pid_t pid = child(0);
    TRY(pirn_wait_pid(pid, NULL), pid);
    return failed;
}

static void sweep(const struct sweep *s)
{
    bool reached = true;
    for (uint32_t n = 0; reached; n++) {
        int fds = count_fds();
        fail(s->which, n, s->err, 1);
        int failed = use_all(s->err);
        reached = did_fail();
        fail_no_more();
        CHECK_EQ(failed, reached && !s->retried);
        CHECK_EQ(count_fds(), fds);
        CHECK_LT(n, 50);
    }
}

static int sweep_all(void *arg)
{
    (void)arg;
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    CHECK_EQ(pirn_select(PIRN_READABLE(fds[0]), PIRN_AFTER(PIRN_MS)), 1); /* the poller is there */
    for (size_t i = 0; i < ARRAY_LEN(sweeps); i++)
        sweep(&sweeps[i]);
    return 1;
}

TEST_ATTR(each_call_fails, .procs = "1,2,4,16", .env = "PIRN_DEBUG=io=epoll", .timeout = 60)
{
    CHECK_EQ(pirn_run(sweep_all, NULL), 1);
}
