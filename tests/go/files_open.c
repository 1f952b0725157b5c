/* SPDX-License-Identifier: MIT */
/* pirn_open: results, contexts that end, and descriptors that come too late. */
#include "go/files.h"

#include <pthread.h>

FILE_TEST(opens_files)
{
    char path[64];
    temp_path(path);
    int fd = pirn_open(path, O_RDWR);
    CHECK_GE(fd, 0);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
    CHECK_EQ(pirn_pwrite(fd, "abc", 3, 0), 3);
    close(fd);
    CHECK_EQ(pirn_open(path, O_RDWR | O_CREAT | O_EXCL, 0600), -EEXIST);
    CHECK_EQ(pirn_open("/nowhere/at/all", O_RDONLY), -ENOENT);
    CHECK_EQ(pirn_open(path, O_RDONLY | O_DIRECTORY), -ENOTDIR);
    CHECK_EQ(unlink(path), 0);
    fd = pirn_open(path, O_RDWR | O_CREAT, 0640);
    struct stat st = {.st_mode = 0}; /* MemorySanitizer of clang 14 does not know fstat */
    CHECK_GE(fd, 0);
    CHECK_EQ(fstat(fd, &st), 0);
    CHECK_EQ(st.st_mode & 0750, 0640); /* whatever umask takes away of the rest */
    close(fd);
    char *name = strrchr(path, '/');
    *name = '\0';
    int dir = pirn_open(path, O_RDONLY | O_DIRECTORY);
    CHECK_GE(dir, 0);
    fd = pirn_openat(dir, name + 1, O_RDONLY);
    CHECK_GE(fd, 0);
    close(fd);
    CHECK_EQ(unlinkat(dir, name + 1, 0), 0);
    CHECK_EQ(pirn_openat(fd, "x", O_RDONLY), -EBADF);
    close(dir);
}

/* The same in a context: by the ring or by a helper. */
static void opens_in(pirn_ctx *ctx)
{
    char path[64];
    temp_path(path);
    pirn_ctx *old = pirn_ctx_use(ctx);
    for (int i = 0; i < 20; i++) {
        int fd = pirn_open(path, O_RDWR);
        CHECK_GE(fd, 0);
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
        close(fd);
        CHECK_EQ(pirn_open("/nowhere/at/all", O_RDONLY), -ENOENT);
        CHECK_EQ(pirn_open(NULL, O_RDONLY), -EFAULT);
    }
    pirn_ctx_use(old);
    CHECK_EQ(unlink(path), 0);
}

FILE_TEST(opens_files_in_a_context)
{
    pirn_wg wg = {0};
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, opens_in, ctx);
    pirn_wg_wait(&wg);
    pirn_ctx_cancel(ctx, 0);
    pirn_ctx *old = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_open("/", O_RDONLY), -ECANCELED);
    pirn_ctx_use(old);
    pirn_ctx_release(ctx);
}

/* --- FIFOs: an open that waits for the other end --------------------------------------------------------- */

static const char *make_fifo(char path[64])
{
    temp_path(path);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    return path;
}

static atomic_int opened;

static void opens_fifo(const char *path, int flags)
{
    int fd = pirn_open(path, flags);
    CHECK_GE(fd, 0);
    atomic_fetch_add(&opened, 1);
    close(fd);
}

static void meet_at_fifo(pirn_ctx *ctx)
{
    char path[64];
    pirn_wg wg = {0};
    pirn_ctx *old = pirn_ctx_use(ctx);
    make_fifo(path);
    atomic_store(&opened, 0);
    pirn_wg_go(&wg, opens_fifo, path, O_RDONLY);
    for (int i = 0; i < 20; i++)
        pirn_yield(); /* others run */
    pirn_sleep(PIRN_MS);
    CHECK_EQ(atomic_load(&opened), 0);
    pirn_wg_go(&wg, opens_fifo, path, O_WRONLY);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&opened), 2);
    pirn_ctx_use(old);
    CHECK_EQ(unlink(path), 0);
}

FILE_TEST(waits_for_the_other_end)
{
    meet_at_fifo(pirn_ctx_background());
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    meet_at_fifo(ctx);
    pirn_ctx_release(ctx);
}

static void opens_until_cancelled(const char *path, pirn_ctx *ctx, int err)
{
    pirn_ctx *old = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_open(path, O_RDONLY), err);
    pirn_ctx_use(old);
}

FILE_TEST(an_open_can_be_given_up)
{
    char path[64];
    pirn_wg wg = {0};
    int before = count_fds();
    make_fifo(path);
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    for (int i = 0; i < 5; i++)
        pirn_wg_go(&wg, opens_until_cancelled, path, ctx, -ECANCELED);
    pirn_sleep(PIRN_MS);
    pirn_ctx_cancel(ctx, 0);
    pirn_wg_wait(&wg);
    pirn_ctx_release(ctx);
    ctx = pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_MS);
    opens_until_cancelled(path, ctx, -ETIMEDOUT);
    pirn_ctx_release(ctx);
    /* What still waits inside, or comes there yet, has its other end now, and is closed. */
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK_GE(fd, 0);
    SLEEP_UNTIL(count_fds() <= before + 3); /* this one, and two of the ring's */
    CHECK_EQ(unlink(path), 0);
}

/* --- what has not begun does not begin ------------------------------------------------------------------------ */

enum { MOST = 70 }; /* opens at a time */

static atomic_int given_up;

static void opens_and_gives_up(const char *path, pirn_ctx *ctx)
{
    pirn_ctx *old = pirn_ctx_use(ctx);
    int fd = pirn_open(path, O_RDONLY);
    CHECK(fd >= 0 || fd == -ECANCELED);
    if (fd >= 0)
        close(fd);
    pirn_ctx_use(old);
    atomic_fetch_add(&given_up, 1);
}

/* All threads for opens wait at a FIFO; one that would make a file is given up, and then they are let go. */
static int makes_no_file(void *arg)
{
    char fifo[64], path[64];
    pirn_wg wg = {0};
    (void)arg;
    make_fifo(fifo);
    CHECK_EQ(unlink(temp_path(path)), 0);
    pirn_ctx *all = pirn_ctx_with_cancel(pirn_ctx_background());
    for (int i = 0; i < MOST; i++)
        pirn_wg_go(&wg, opens_and_gives_up, fifo, all);
    SLEEP_UNTIL(count_threads_named("pirn-helper\n") == MOST);
    pirn_sleep(5 * PIRN_MS);
    pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 2 * PIRN_MS);
    pirn_ctx *old = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_open(path, O_WRONLY | O_CREAT, 0600), -ETIMEDOUT);
    pirn_ctx_use(old);
    pirn_ctx_release(ctx);
    int fd = open(fifo, O_RDWR | O_CLOEXEC);
    CHECK_GE(fd, 0);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&given_up), MOST);
    ctx = pirn_ctx_use(all); /* one after it in the queue is made */
    int other = pirn_open("/", O_RDONLY);
    CHECK_GE(other, 0);
    pirn_ctx_use(ctx);
    pirn_ctx_release(all);
    CHECK_EQ(access(path, F_OK), -1);
    close(other);
    close(fd);
    CHECK_EQ(unlink(fifo), 0);
    return 1;
}

TEST_ATTR(an_open_that_waits_its_turn_is_not_made, .procs = "1,4", .env = "PIRN_DEBUG=io=epoll")
{
    CHECK_EQ(pirn_run_config(&(pirn_config){.max_threads = MOST}, makes_no_file, NULL), 1);
}

/* --- the end of the runtime ------------------------------------------------------------------------------- */

static char end_path[64];

static void opens_for_ever(void)
{
    for (;;) {
        int fd = pirn_open("/etc", O_RDONLY);
        CHECK(fd >= 0 || fd == -ECANCELED);
        if (fd >= 0)
            close(fd);
        pirn_yield();
    }
}

static void waits_for_ever(void)
{
    int fd = pirn_open(end_path, O_RDONLY);
    if (fd >= 0)
        close(fd);
}

static int leaves_opens_behind(void *arg)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    (void)arg;
    for (int i = 0; i < 4; i++)
        pirn_go(opens_for_ever);
    pirn_ctx *old = pirn_ctx_use(ctx); /* what is spawned now has it, too */
    for (int i = 0; i < 4; i++)
        pirn_go(opens_for_ever);
    pirn_go(waits_for_ever);
    pirn_ctx_use(old);
    for (int i = 0; i < 100; i++)
        pirn_yield();
    pirn_ctx_release(ctx); /* cancels: none that is under way may be lost */
    for (int i = 0; i < 20; i++)
        pirn_yield();
    return 1;
}

static void *other_end(void *arg)
{
    /* so that no helper waits in the open when the runtime ends */
    while (!atomic_load((atomic_int *)arg)) {
        int fd = open(end_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        plain_sleep(100 * PIRN_US);
        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

static void end_with_opens(void)
{
    atomic_int stop = 0;
    pthread_t t;
    make_fifo(end_path);
    int before = count_fds();
    CHECK_EQ(pthread_create(&t, NULL, other_end, &stop), 0);
    for (int round = 0; round < 5; round++)
        CHECK_EQ(pirn_run(leaves_opens_behind, NULL), 1);
    atomic_store(&stop, 1);
    pthread_join(t, NULL);
    CHECK_EQ(count_fds(), before);
    CHECK_EQ(unlink(end_path), 0);
}

TEST_ATTR(end_with_opens_under_way, .procs = "1,2,4,16", .timeout = 60)
{
    end_with_opens();
}

TEST_ATTR(end_with_opens_under_way_uring, .procs = "1,4", .env = "PIRN_DEBUG=io=uring",
          .timeout = 60)
{
    end_with_opens();
}

TEST_ATTR(end_with_opens_under_way_threads, .procs = "1,4", .env = "PIRN_DEBUG=io=epoll",
          .timeout = 60)
{
    end_with_opens();
}

TEST(without_a_runtime)
{
    int fd = pirn_open("/etc", O_RDONLY);
    CHECK_GE(fd, 0);
    close(fd);
    CHECK_EQ(pirn_open("/nowhere/at/all", O_RDONLY), -ENOENT);
}
