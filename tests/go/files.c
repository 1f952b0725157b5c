/* SPDX-License-Identifier: MIT */
/* pirn_pread, pirn_pwrite, pirn_fsync: what POSIX says, warm and cold, and nothing of the kernel's later. */
#include "go/files.h"

#include <pthread.h>
#include <sys/uio.h>

enum { PAGE = 4096, SIZE = 300 * 1024 + 123 };

static void check_whole_file(int fd, size_t step)
{
    unsigned char *buf = malloc(step);
    for (size_t at = 0; at < SIZE; at += step) {
        size_t n = step < SIZE - at ? step : SIZE - at;
        memset(buf, 0, step);
        CHECK_EQ(pirn_pread(fd, buf, step, (off_t)at), n);
        check_bytes(buf, n, at);
    }
    free(buf);
}

FILE_TEST(reads_what_was_written)
{
    int fd = temp_file(0);
    unsigned char *buf = malloc(SIZE);
    fill(buf, SIZE, 0);
    CHECK_EQ(pirn_pwrite(fd, buf, 1000, 0), 1000);
    CHECK_EQ(pirn_pwrite(fd, buf + 1000, SIZE - 1000, 1000), SIZE - 1000);
    check_whole_file(fd, SIZE);
    check_whole_file(fd, PAGE);
    check_whole_file(fd, 999);
    CHECK_EQ(pirn_fsync(fd), 0);
    CHECK_EQ(pirn_fdatasync(fd), 0);
    for (size_t step = 1000; step <= 4 * SIZE; step *= 16) {
        drop_cache(fd);
        check_whole_file(fd, step);
    }
    free(buf);
    close(fd);
}

FILE_TEST(ends_where_the_file_ends)
{
    unsigned char buf[2 * PAGE];
    int fd = temp_file(0);
    write_file(fd, SIZE);
    for (int cold = 0; cold < 2; cold++) {
        CHECK_EQ(pirn_pread(fd, buf, sizeof buf, SIZE - 10), 10);
        check_bytes(buf, 10, SIZE - 10);
        CHECK_EQ(pirn_pread(fd, buf, sizeof buf, SIZE), 0);
        CHECK_EQ(pirn_pread(fd, buf, sizeof buf, SIZE + 100000), 0);
        CHECK_EQ(pirn_pread(fd, buf, 0, 0), 0);
        CHECK_EQ(pirn_pwrite(fd, buf, 0, 0), 0);
        drop_cache(fd);
    }
    CHECK_EQ(ftruncate(fd, 0), 0);
    CHECK_EQ(pirn_pread(fd, buf, sizeof buf, 0), 0);
    close(fd);
}

FILE_TEST(holes_are_zeros)
{
    static const unsigned char zeros[PAGE];
    unsigned char buf[PAGE];
    int fd = temp_file(0);
    CHECK_EQ(ftruncate(fd, 64 * PAGE), 0);
    CHECK_EQ(pirn_pwrite(fd, "x", 1, 32 * PAGE), 1);
    for (int cold = 0; cold < 2; cold++) {
        for (int i = 0; i < 64; i++) {
            CHECK_EQ(pirn_pread(fd, buf, PAGE, (off_t)i * PAGE), PAGE);
            if (i == 32) {
                CHECK_EQ(buf[0], 'x');
                buf[0] = 0;
            }
            CHECK(!memcmp(buf, zeros, PAGE));
        }
        drop_cache(fd);
    }
    close(fd);
}

/* Part of it is in the page cache, in all patterns: RWF_NOWAIT alone would end short. */
FILE_TEST(partly_cached)
{
    enum { PAGES = 6 };
    unsigned char buf[PAGES * PAGE], one;
    int fd = temp_file(0);
    write_file(fd, SIZE);
    CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0); /* no reading ahead */
    for (int pattern = 0; pattern < 1 << PAGES; pattern++) {
        drop_cache(fd);
        for (int i = 0; i < PAGES; i++)
            if (pattern & 1 << i)
                CHECK_EQ(pread(fd, &one, 1, i * PAGE), 1);
        memset(buf, 0, sizeof buf);
        CHECK_EQ(pirn_pread(fd, buf, sizeof buf, 0), sizeof buf);
        check_bytes(buf, sizeof buf, 0);
    }
    close(fd);
}

static void read_partly_cached(void)
{
    enum { PAGES = 5 };
    unsigned char buf[PAGES * PAGE], one;
    int fd = temp_file(0);
    write_file(fd, SIZE);
    CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
    for (int pattern = 0; pattern < 1 << PAGES; pattern++) {
        struct iovec parts[] = {{buf, 100}, {buf + 100, PAGE}, {buf + 100 + PAGE, 4 * PAGE - 100}};
        drop_cache(fd);
        for (int i = 0; i < PAGES; i++)
            if (pattern & 1 << i)
                CHECK_EQ(pread(fd, &one, 1, i * PAGE), 1);
        memset(buf, 0, sizeof buf);
        CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
        CHECK_EQ(pattern % 2 ? pirn_read(fd, buf, sizeof buf) : pirn_readv(fd, parts, 3),
                 sizeof buf);
        check_bytes(buf, sizeof buf, 0);
        CHECK_EQ(lseek(fd, 0, SEEK_CUR), sizeof buf);
    }
    CHECK_EQ(lseek(fd, SIZE - 10, SEEK_SET), SIZE - 10);
    CHECK_EQ(pirn_read(fd, buf, sizeof buf), 10);
    CHECK_EQ(pirn_read(fd, buf, sizeof buf), 0);
    close(fd);
}

/* The same from where the file stands: many take a short read for its end. */
FILE_TEST(read_where_it_stands_partly_cached)
{
    read_partly_cached();
}

TEST(read_where_it_stands_without_a_runtime)
{
    read_partly_cached();
}

FILE_TEST(nonblocking_files_are_read_whole)
{
    int fd = temp_file(O_NONBLOCK);
    write_file(fd, SIZE);
    check_whole_file(fd, SIZE);
    drop_cache(fd);
    check_whole_file(fd, 50000);
    CHECK_EQ(pirn_pwrite(fd, "abc", 3, 0), 3);
    CHECK_EQ(pirn_fdatasync(fd), 0);
    close(fd);
}

/* What is never tried with success without waiting: each call must still come to its end. */
FILE_TEST(around_the_page_cache)
{
    enum { N = 4 * 4096 };
    char path[TEMP_PATH];
    temp_path(path);
    int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    CHECK_EQ(unlink(path), 0);
    if (fd < 0)
        SKIP("no O_DIRECT here");
    unsigned char *buf = aligned_alloc(4096, N);
    CHECK(buf != NULL);
    fill(buf, N, 0);
    CHECK_EQ(pirn_write(fd, buf, N), N);
    memset(buf, 0, N);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(pirn_read(fd, buf, N), N);
    check_bytes(buf, N, 0);
    CHECK_EQ(pirn_read(fd, buf, N), 0);
    CHECK_EQ(pirn_fd_wait(fd, PIRN_IN | PIRN_OUT, PIRN_NEVER), PIRN_IN | PIRN_OUT);
    free(buf);
    CHECK_EQ(pirn_close(fd), 0);
}

FILE_TEST(errors)
{
    unsigned char buf[100] = {0};
    int fds[2], fd = temp_file(0), dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int ro = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    write_file(fd, SIZE);
    CHECK_EQ(pirn_pread(-1, buf, 1, 0), -EBADF);
    CHECK_EQ(pirn_pread(12345, buf, 1, 0), -EBADF);
    CHECK_EQ(pirn_pread(fds[0], buf, 1, 0), -ESPIPE);
    CHECK_EQ(pirn_pread(dir, buf, 1, 0), -EISDIR);
    CHECK_EQ(pirn_pread(fd, buf, 1, -1), -EINVAL);
    CHECK_EQ(pirn_pread(fd, buf, 1, INT64_MIN), -EINVAL);
    if (!test_on_valgrind()) /* who reports the address */
        CHECK_EQ(pirn_pread(fd, NULL, 100, 0), -EFAULT);
    CHECK_EQ(pirn_pwrite(-1, buf, 1, 0), -EBADF);
    CHECK_EQ(pirn_pwrite(ro, buf, 1, 0), -EBADF);
    CHECK_EQ(pirn_pwrite(fds[1], buf, 1, 0), -ESPIPE);
    CHECK_EQ(pirn_pwrite(fd, buf, 1, -1), -EINVAL);
    CHECK_EQ(pirn_fsync(-1), -EBADF);
    CHECK_EQ(pirn_fsync(fds[0]), -EINVAL);
    CHECK_EQ(pirn_fdatasync(12345), -EBADF);
    close(fds[0]);
    close(fds[1]);
    close(ro);
    close(dir);
    close(fd);
}

/* What has no RWF_NOWAIT, and what is never cached. */
FILE_TEST(other_kinds_of_files)
{
    char buf[64 * 1024];
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), proc = open("/proc/self/status", O_RDONLY);
    CHECK_EQ(pirn_pread(zero, buf, sizeof buf, 12345), sizeof buf);
    CHECK_EQ(pirn_pread(zero, buf, 1, 0), 1);
    ssize_t n = pirn_pread(proc, buf, sizeof buf - 1, 0);
    CHECK_GT(n, 100);
    buf[n] = '\0';
    CHECK(strstr(buf, "Threads:") != NULL);
    close(zero);
    close(proc);
}

/* --- many at a time ------------------------------------------------------------------------------------ */

enum { MANY = 100 };

static void reads_and_writes(int fd, int i)
{
    unsigned char buf[3 * PAGE];
    size_t at =
        (size_t)i * 2 * sizeof buf; /* its own region, and behind it one that is only read */
    for (int round = 0; round < 2; round++) {
        fill(buf, sizeof buf, at + (size_t)round);
        CHECK_EQ(pirn_pwrite(fd, buf, sizeof buf, (off_t)at), sizeof buf);
        if (i % 10 == 0)
            CHECK_EQ(pirn_fdatasync(fd), 0);
        CHECK_EQ(posix_fadvise(fd, (off_t)at, sizeof buf, POSIX_FADV_DONTNEED), 0);
        memset(buf, 0, sizeof buf);
        CHECK_EQ(pirn_pread(fd, buf, sizeof buf, (off_t)at), sizeof buf);
        check_bytes(buf, sizeof buf, at + (size_t)round);
        CHECK_EQ(pirn_pread(fd, buf, sizeof buf, (off_t)(at + sizeof buf)), sizeof buf);
        check_bytes(buf, sizeof buf, at + sizeof buf);
    }
}

FILE_TEST(a_hundred_at_a_time, .timeout = 60)
{
    pirn_wg wg = {0};
    int fd = temp_file(0);
    write_file(fd, (size_t)MANY * 6 * PAGE);
    drop_cache(fd);
    for (int i = 0; i < MANY; i++)
        pirn_wg_go(&wg, reads_and_writes, fd, i);
    pirn_wg_wait(&wg);
    close(fd);
}

/* --- contexts --------------------------------------------------------------------------------------------- */

FILE_TEST(what_is_cached_wins_over_a_context)
{
    unsigned char buf[PAGE];
    int fd = temp_file(0);
    write_file(fd, SIZE);
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background()), *old = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_pread(fd, buf, PAGE, 0), PAGE);
    pirn_ctx_cancel(ctx, 0);
    struct iovec v = {buf, PAGE};
    bool cached = preadv2(fd, &v, 1, 0, RWF_NOWAIT) == PAGE; /* not every file system can tell */
    CHECK_EQ(pirn_pread(fd, buf, PAGE, 0), cached ? PAGE : -ECANCELED);
    CHECK_EQ(pirn_pwrite(fd, buf, PAGE, 0), -ECANCELED);
    CHECK_EQ(pirn_fsync(fd), -ECANCELED);
    drop_cache(fd);
    ssize_t r = pirn_pread(fd, buf, PAGE, 0); /* others may bring it back into the cache */
    CHECK(r == -ECANCELED || r == PAGE);
    pirn_ctx_use(old);
    pirn_ctx_release(ctx);
    close(fd);
}

struct race {
    int fd, round;
    pirn_ctx *ctx;
};

/* When it has returned, whatever it says, nobody writes to the buffer any more. */
static void reads_until_cancelled(struct race *r)
{
    pirn_ctx *old = pirn_ctx_use(r->ctx);
    size_t size = 8 * PAGE;
    unsigned char *buf = malloc(size);
    memset(buf, 0, size);
    ssize_t n = pirn_pread(r->fd, buf, size, 0);
    CHECK(n > 0 || n == -ECANCELED);
    if (n > 0)
        check_bytes(buf, (size_t)n, 0);
    memset(buf, 0xee, size);
    pirn_sleep(200 * PIRN_US);
    for (size_t i = 0; i < size; i++)
        CHECK_EQ(buf[i], 0xee);
    free(buf);
    pirn_ctx_use(old);
}

FILE_TEST(nothing_is_written_after_a_cancel, .timeout = 60)
{
    int fd = temp_file(0);
    write_file(fd, 8 * PAGE);
    for (int round = 0; round < 30; round++) {
        pirn_wg wg = {0};
        struct race r = {fd, round, pirn_ctx_with_cancel(pirn_ctx_background())};
        drop_cache(fd);
        for (int i = 0; i < 4; i++)
            pirn_wg_go(&wg, reads_until_cancelled, &r);
        for (int i = 0; i < round; i++)
            pirn_yield();
        pirn_ctx_cancel(r.ctx, 0);
        pirn_wg_wait(&wg);
        pirn_ctx_release(r.ctx);
    }
    close(fd);
}

/* --- the end of the runtime ------------------------------------------------------------------------------- */

static unsigned char *shared_buf;

static void reads_for_ever(int fd, int i)
{
    for (;;) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        pirn_pread(fd, shared_buf + (size_t)i * PAGE, PAGE, (off_t)i * PAGE);
        pirn_fdatasync(fd);
        pirn_yield();
    }
}

static int leaves_readers_behind(void *arg)
{
    int fd = *(int *)arg;
    for (int i = 0; i < 20; i++)
        pirn_go(reads_for_ever, fd, i);
    for (int i = 0; i < 50; i++)
        pirn_yield();
    return 1;
}

static void ends_with_reads_under_way(void)
{
    int fd = temp_file(0);
    write_file(fd, 20 * PAGE);
    int before = -1;
    for (int round = 0; round < 10; round++) {
        shared_buf = malloc(20 * PAGE);
        drop_cache(fd);
        CHECK_EQ(pirn_run(leaves_readers_behind, &fd), 1);
        memset(shared_buf, 0xee, 20 * PAGE);
        plain_sleep(200 * PIRN_US);
        for (int i = 0; i < 20 * PAGE; i++)
            CHECK_EQ(shared_buf[i], 0xee);
        free(shared_buf);
        CHECK(before < 0 || count_fds() == before);
        before = count_fds();
    }
    close(fd);
}

TEST_ATTR(end_with_reads_under_way, .procs = "1,2,4,16", .timeout = 60)
{
    ends_with_reads_under_way();
}

TEST_ATTR(end_with_reads_under_way_uring, .procs = "1,4", .env = "PIRN_DEBUG=io=uring",
          .timeout = 60)
{
    ends_with_reads_under_way();
}

/* --- other threads ------------------------------------------------------------------------------------------ */

static void *all_calls(void *arg)
{
    int fd = *(int *)arg;
    unsigned char buf[PAGE];
    CHECK_EQ(pirn_pwrite(fd, "hello", 5, 0), 5);
    CHECK_EQ(pirn_pread(fd, buf, PAGE, 0), 5);
    CHECK(!memcmp(buf, "hello", 5));
    CHECK_EQ(pirn_pread(fd, buf, PAGE, -1), -EINVAL);
    CHECK_EQ(pirn_pread(-1, buf, PAGE, 0), -EBADF);
    CHECK_EQ(pirn_fsync(fd), 0);
    CHECK_EQ(pirn_fdatasync(fd), 0);
    return NULL;
}

TEST_ATTR(from_any_thread, .procs = "1,4")
{
    int fd = temp_file(0);
    all_calls(&fd); /* without a runtime */
    CHECK_EQ(pirn_start(NULL), 0);
    all_calls(&fd);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, all_calls, &fd), 0);
    pthread_join(t, NULL);
    CHECK_EQ(pirn_stop(), 0);
    all_calls(&fd);
    close(fd);
}

static void reads_on_a_small_stack(void *arg)
{
    static unsigned char buf[PAGE];
    int fd = *(int *)arg;
    drop_cache(fd);
    CHECK_EQ(pirn_pread(fd, buf, PAGE, 0), PAGE);
    CHECK_EQ(pirn_pwrite(fd, buf, PAGE, 0), PAGE);
    CHECK_EQ(pirn_fdatasync(fd), 0);
    close(fd);
}

FILE_TEST(dense_stacks)
{
    if (TEST_ASAN || TEST_TSAN)
        SKIP("a sanitizer needs more stack");
    static int fd;
    fd = temp_file(0);
    write_file(fd, PAGE);
    CHECK_EQ(
        pirn_spawn(&(pirn_attr){.stack_size = PIRN_STACK_DENSE_2K}, reads_on_a_small_stack, &fd),
        0);
    SLEEP_UNTIL(pirn_num_goroutines() == 1);
}

TEST(config_is_checked)
{
    CHECK_EQ(pirn_start(&(pirn_config){.io = 3}), -EINVAL);
    CHECK_EQ(pirn_start(&(pirn_config){.io = -1}), -EINVAL);
    for (int io = PIRN_IO_AUTO; io <= PIRN_IO_URING; io++) {
        CHECK_EQ(pirn_start(&(pirn_config){.io = io}), 0);
        CHECK_EQ(pirn_stop(), 0);
    }
}
