/* SPDX-License-Identifier: MIT */
/* Files to read and write, and how many descriptors the process has. */
#ifndef TESTS_GO_FILES_H
#define TESTS_GO_FILES_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "go/busy.h"
#include "temp.h"

/* A test with every way to read: as it comes, by the ring alone, without it. */
#define FILE_TEST(name, ...)                                                                       \
    static void name##_all(void);                                                                  \
    TEST_RUN_ATTR(name, .procs = "1,2,4,16", ##__VA_ARGS__)                                        \
    {                                                                                              \
        name##_all();                                                                              \
    }                                                                                              \
    TEST_RUN_ATTR(name##_uring, .procs = "1,4", .env = "PIRN_DEBUG=io=uring", ##__VA_ARGS__)       \
    {                                                                                              \
        name##_all();                                                                              \
    }                                                                                              \
    TEST_RUN_ATTR(name##_threads, .procs = "1,4", .env = "PIRN_DEBUG=io=epoll", ##__VA_ARGS__)     \
    {                                                                                              \
        name##_all();                                                                              \
    }                                                                                              \
    static void name##_all(void)

/* An empty file without a name. */
static inline int temp_file(int flags)
{
    char path[TEMP_PATH];
    int fd = open(temp_path(path), O_RDWR | O_CLOEXEC | flags);
    CHECK_GE(fd, 0);
    CHECK_EQ(unlink(path), 0);
    return fd;
}

static inline unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + i / 4096 * 13 + 1);
}

static inline void fill(unsigned char *buf, size_t n, size_t from)
{
    for (size_t i = 0; i < n; i++)
        buf[i] = byte_at(from + i);
}

static inline void check_bytes(const unsigned char *buf, size_t n, size_t from)
{
    for (size_t i = 0; i < n; i++)
        if (buf[i] != byte_at(from + i))
            CHECK_EQ(buf[i], byte_at(from + i));
}

static inline void write_file(int fd, size_t size)
{
    unsigned char *buf = malloc(size);
    CHECK(buf != NULL);
    fill(buf, size, 0);
    CHECK_EQ(pwrite(fd, buf, size, 0), size);
    free(buf);
}

/* What is on the disk leaves the page cache (if the file system is one that has a disk). */
static inline void drop_cache(int fd)
{
    CHECK_EQ(fdatasync(fd), 0);
    CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

/* But for those in /proc and /sys, which sysmon opens and closes at any time. */
static inline int count_fds_but(const char *kind)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    for (struct dirent *e; (e = readdir(dir));) {
        char to[32] = "";
        ssize_t len = readlinkat(dirfd(dir), e->d_name, to, sizeof to - 1);
        n += len > 0 && strncmp(to, "/proc/", 6) && strncmp(to, "/sys/", 5) && strcmp(to, kind);
    }
    closedir(dir);
    return n;
}

static inline int count_all_fds(void)
{
    return count_fds_but("");
}

/* Not the pollers, one for each P that has waited for a descriptor. */
static inline int count_fds(void)
{
    return count_fds_but("anon_inode:[eventpoll]");
}

/* name: with a newline. */
static inline int count_threads_named(const char *thread)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *d; (d = readdir(dir));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
        FILE *f = fopen(path, "r");
        if (f) {
            n += fgets(name, sizeof name, f) && strcmp(name, thread) == 0;
            fclose(f);
        }
    }
    closedir(dir);
    return n;
}

#endif
