/* SPDX-License-Identifier: MIT */
/*
 * Another kernel, or another socket, than the tests can have: what the C library is asked is answered here.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../go/files.h"
#include "../go/net.h"

/* --- a socket with TCP_ULP, such as TLS by the kernel: a read ends with a record ---------------------------- */

enum { RECORD = 5 };
static atomic_int with_ulp = -1; /* this one */

int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
    int (*real)(int, int, int, void *, socklen_t *);
    if (level == IPPROTO_TCP && option == TCP_ULP && fd == atomic_load(&with_ulp)) {
        memcpy(value, "tls", 4);
        *len = 4;
        return 0;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "getsockopt");
    return real(fd, level, option, value, len);
}

ssize_t recv(int fd, void *buf, size_t n, int flags)
{
    ssize_t (*real)(int, void *, size_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "recv");
    return real(fd, buf, fd == atomic_load(&with_ulp) && n > RECORD ? RECORD : n, flags);
}

/* What is not known to be a socket is read by this. */
ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
    ssize_t (*real)(int, const struct iovec *, int, off_t, int);
    struct iovec first = n ? *iov : (struct iovec){NULL, 0};
    *(void **)&real = dlsym(RTLD_NEXT, "preadv64v2");
    if (fd == atomic_load(&with_ulp) && first.iov_len > RECORD) {
        first.iov_len = RECORD;
        return real(fd, &first, 1, offset, flags);
    }
    return real(fd, iov, n, offset, flags);
}

static void send_records(int fd, int n)
{
    char bytes[64] = "";
    CHECK_EQ(pirn_write(fd, bytes, (size_t)n * RECORD), n * RECORD);
    let_wait(); /* they have come, and so has the only event of theirs */
}

static void read_records(int fd, int n)
{
    char buf[64];
    for (int i = 0; i < n; i++) {
        CHECK_EQ(pirn_fd_deadline(fd, pirn_now() + 10 * PIRN_SEC, 0), 0);
        CHECK_EQ(pirn_read(fd, buf, sizeof buf), RECORD);
    }
    CHECK_EQ(pirn_fd_deadline(fd, 0, 0), 0);
}

static void waits_for_nothing(int fd)
{
    char c;
    CHECK_LE(pirn_read(fd, &c, 1), 0); /* it, or the other end, is closed */
}

/* The poller has it already, and is looked at since somebody waits: it tells of what comes once, at once. */
static struct pair known_pair(pirn_wg *wg)
{
    char c;
    struct pair p = tcp_pair();
    pirn_wg_go(wg, waits_for_nothing, p.b);
    CHECK_EQ(pirn_fd_deadline(p.a, pirn_now() + PIRN_MS, 0), 0);
    CHECK_EQ(pirn_read(p.a, &c, 1), -ETIMEDOUT);
    CHECK_EQ(pirn_fd_deadline(p.a, 0, 0), 0);
    return p;
}

/* The hint is used while pirn is not told, so a record stays where it is; and no more once it is. */
TEST_RUN_ATTR(ulp_of_pirns_own, PROCS)
{
    int all_hinted = 0;
    for (int i = 0; i < 10; i++) {
        char buf[64];
        pirn_wg other = {0};
        struct pair p = known_pair(&other);
        atomic_store(&with_ulp, p.a);
        send_records(p.b, 3);
        read_records(p.a, 1);
        CHECK_EQ(pirn_fd_deadline(p.a, pirn_now() + 5 * PIRN_MS, 0), 0);
        bool hinted = pirn_read(p.a, buf, sizeof buf) == -ETIMEDOUT;
        all_hinted += hinted;
        CHECK_EQ(pirn_fd_adopt(p.a), 0);
        read_records(p.a, hinted ? 2 : 1);
        send_records(p.b, 4);
        read_records(p.a, 4);
        atomic_store(&with_ulp, -1);
        close_pair(p);
        pirn_wg_wait(&other);
    }
    CHECK_GT(all_hinted, 0); /* not if the event came after the read */
}

static void reads(int fd, atomic_int *got)
{
    char buf[64];
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pirn_read(fd, buf, sizeof buf), RECORD);
        atomic_fetch_add(got, 1);
    }
}

/* One reads while it is set, and waits, because of the hint, for what is there already. */
TEST_RUN_ATTR(ulp_while_one_waits, PROCS)
{
    for (int i = 0; i < 10; i++) {
        atomic_int got = 0;
        pirn_wg wg = {0}, other = {0};
        struct pair p = known_pair(&other);
        atomic_store(&with_ulp, p.a);
        send_records(p.b, 3);
        pirn_wg_go(&wg, reads, p.a, &got);
        if (i % 2) {
            let_wait();
        }
        CHECK_EQ(pirn_fd_adopt(p.a), 0);
        pirn_wg_wait(&wg);
        atomic_store(&with_ulp, -1);
        close_pair(p);
        pirn_wg_wait(&other);
    }
}

/* One of the program's: adopted when it has it, it never has the hint; not adopted, neither. */
TEST_RUN_ATTR(ulp_of_the_program, PROCS)
{
    for (int i = 0; i < 10; i++) {
        struct pair p = tcp_pair();
        int fd = fcntl(p.a, F_DUPFD_CLOEXEC, 500);
        CHECK_GE(fd, 500);
        CHECK_EQ(pirn_close(p.a), 0);
        atomic_store(&with_ulp, fd);
        if (i % 2) {
            CHECK_EQ(pirn_fd_adopt(fd), 0);
        }
        send_records(p.b, 3);
        read_records(fd, 3);
        send_records(p.b, 3);
        read_records(fd, 3);
        atomic_store(&with_ulp, -1);
        CHECK_EQ(pirn_close(fd), 0);
        CHECK_EQ(pirn_close(p.b), 0);
    }
}

/* --- a file that is sent piece by piece, and there is always room ------------------------------------------- */

static atomic_bool by_pieces;
static atomic_long pieces;

ssize_t sendfile(int out, int in, off_t *offset, size_t n)
{
    ssize_t (*real)(int, int, off_t *, size_t);
    if (atomic_load(&by_pieces)) {
        atomic_fetch_add(&pieces, 1);
        return 1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "sendfile64");
    return real(out, in, offset, n);
}

static void ends(int i, pirn_ctx *ctx, int fd)
{
    SLEEP_UNTIL(atomic_load(&pieces) > 0);
    switch (i) {
    case 0: pirn_ctx_cancel(ctx, 0); break;
    case 1: CHECK_EQ(pirn_close(fd), 0); break;
    case 2: CHECK_EQ(pirn_fd_deadline(fd, 0, 1), 0); break;
    case 3: CHECK_EQ(pirn_fd_cancel(fd), 0); break;
    }
}

/* It never has to wait, and is ended all the same. */
TEST_RUN_ATTR(sendfile_never_waits, PROCS)
{
    for (int i = 0; i < 8; i++) {
        int fds[2], fd = temp_file(0);
        off_t at = 0;
        pirn_wg wg = {0};
        pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
        CHECK_EQ(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (i & 4 ? SOCK_NONBLOCK : 0), 0, fds),
            0);
        atomic_store(&pieces, 0);
        atomic_store(&by_pieces, true);
        pirn_wg_go(&wg, ends, i % 4, ctx, fds[0]);
        pirn_ctx *old = pirn_ctx_use(ctx);
        CHECK_GT(pirn_sendfile(fds[0], fd, &at, 1 << 30), 0);
        pirn_ctx_use(old);
        pirn_wg_wait(&wg);
        atomic_store(&by_pieces, false);
        pirn_ctx_release(ctx);
        if (i % 4 != 1) {
            CHECK_EQ(pirn_close(fds[0]), 0);
        }
        CHECK_EQ(pirn_close(fds[1]), 0);
        CHECK_EQ(pirn_close(fd), 0);
    }
}
