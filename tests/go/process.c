/* SPDX-License-Identifier: MIT */
/*
 * The process around the runtime: standard descriptors that are closed (conformance 152), and what a new
 * program inherits of pirn's (HAZARDS 17, 48). Programs with more rights than who starts them: unit/debugenv.c.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "go/busy.h"

/* --- descriptors 0 to 2 ------------------------------------------------------------------------- */

static bool is_null(int fd)
{
    struct stat a = {.st_mode = 0}, b = a; /* MemorySanitizer of clang 14 does not know fstat */
    return fstat(fd, &a) == 0 && stat("/dev/null", &b) == 0 && S_ISCHR(a.st_mode)
           && a.st_rdev == b.st_rdev;
}

/* What is printed reaches nobody: neither a file that the program opens nor a poller. */
static int prints(void *arg)
{
    int fds[2], closed = *(int *)arg;
    CHECK_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    for (int fd = 0; fd <= 2; fd++)
        if (closed & 1 << fd)
            _exit(is_null(fd) && fds[0] > 2 ? 0 : 1);
    return 0;
}

static int run_without(int closed)
{
    int status;
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        for (int fd = 0; fd <= 2; fd++)
            if (closed & 1 << fd)
                close(fd);
        _exit(pirn_run(prints, &closed) == 0 ? 0 : 2);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

TEST_ATTR(closed_descriptors, .procs = "1,4")
{
    if (TEST_TSAN)
        SKIP("ThreadSanitizer has a thread of its own, which the child of a fork lacks");
    for (int closed = 0; closed < 8; closed++)
        CHECK_EQ(run_without(closed), 0);
}

/* --- what a new program inherits ---------------------------------------------------------------- */

static int open_fds(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] != '.' && fd != dirfd(d))
            n += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    closedir(d);
    return n;
}

static void reads(int fd)
{
    char byte;
    CHECK_EQ(pirn_read(fd, &byte, 1), 1);
}

static void blocks(void)
{
    plain_sleep(30 * PIRN_MS);
}

/* Pollers, the eventfd, files of /proc: all of them are closed by exec. */
static int uses_descriptors(void *arg)
{
    int fds[2], before = *(int *)arg;
    pirn_wg wg = {0};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    pirn_wg_go(&wg, reads, fds[0]);
    for (int i = 0; i < 2 * pirn_procs(0); i++)
        pirn_wg_go(&wg, blocks);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(open_fds(), before);
        pirn_sleep(PIRN_MS);
    }
    CHECK_EQ(write(fds[1], "x", 1), 1);
    pirn_wg_wait(&wg);
    close(fds[0]);
    close(fds[1]);
    return 0;
}

TEST_ATTR(closed_by_exec, PROCS)
{
    int before = open_fds();
    CHECK_EQ(pirn_run(uses_descriptors, &before), 0);
}
