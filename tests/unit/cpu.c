/* SPDX-License-Identifier: MIT */
/*
 * src/os/cpu.c against made-up /proc and cgroup trees in a temporary
 * directory. This file replaces sched_getaffinity, so that the answers do not
 * depend on the machine: 64 CPUs unless a test says otherwise.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "os/cpu.h"
#include "harness.h"
#include "temp.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAKE_CPUS = 64, FAKE_FAILS = -1, FAKE_EMPTY = -2, FAKE_OFF = 0 };

static int fake_cpus = FAKE_CPUS;

/* As the kernel: EINVAL if the mask is too small for its CPUs. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    memset(set, 0, size);
    if (fake_cpus == FAKE_OFF)
        return syscall(SYS_sched_getaffinity, pid, size, set) < 0 ? -1 : 0;
    if (fake_cpus == FAKE_FAILS) {
        errno = ENOSYS;
        return -1;
    }
    if (fake_cpus == FAKE_EMPTY)
        return 0;
    if ((size_t)fake_cpus > size * CHAR_BIT) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 0; i < (size_t)fake_cpus; i++)
        CPU_SET_S(i, size, set);
    return 0;
}

static char tree[TEMP_PATH];
static struct cpu_limit limit;

static void tree_make(void)
{
    CHECK_EQ(mkdir(temp_name(tree), 0700), 0);
}

static int tree_rm_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void tree_remove(void)
{
    CHECK_EQ(nftw(tree, tree_rm_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Writes tree + path, with its directories. */
static void put(const char *path, const char *text)
{
    char full[8192];
    FILE *f;

    snprintf(full, sizeof(full), "%s%s", tree, path);
    for (char *p = full + strlen(tree) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        CHECK(mkdir(full, 0755) == 0 || errno == EEXIST);
    }
    f = fopen(full, "w");
    CHECK(f != NULL);
    CHECK(fputs(text, f) >= 0);
    CHECK_EQ(fclose(f), 0);
}

static void put_v1(const char *dir, const char *quota, const char *period)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    put(path, quota);
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    put(path, period);
}

static void put_proc(const char *cgroup, const char *mountinfo)
{
    put("/proc/self/cgroup", cgroup);
    put("/proc/self/mountinfo", mountinfo);
}

#define OTHERS                                                                                     \
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"                                      \
    "23 22 0:21 / /proc rw,nosuid shared:5 - proc proc rw\n"
#define MOUNT_V2 OTHERS "31 22 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
#define MOUNT_V1                                                                                   \
    OTHERS                                                                                         \
    "31 22 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"                                   \
    "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"                            \
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:7 - cgroup cgroup rw,cpuacct,cpu\n"

static int reopen(void)
{
    cpu_limit_open_at(&limit, tree);
    return cpu_limit_count(&limit);
}

/* limit.dir without the temporary directory. */
static const char *dir(void)
{
    CHECK(strncmp(limit.dir, tree, strlen(tree)) == 0);
    return limit.dir + strlen(tree);
}

/* Count for one text of cpu.max. */
static int count_max(const char *text)
{
    put("/sys/fs/cgroup/job/cpu.max", text);
    return cpu_limit_count(&limit);
}

TEST(v2)
{
    tree_make();
    put_proc("0::/job\n", MOUNT_V2);
    put("/sys/fs/cgroup/job/cpu.max", "300000 100000\n");
    CHECK_EQ(reopen(), 3);
    CHECK_EQ(limit.cgroup, CPU_CGROUP_V2);
    CHECK_STR(dir(), "/sys/fs/cgroup/job");
    tree_remove();
}

TEST(v2_rounding)
{
    tree_make();
    put_proc("0::/job\n", MOUNT_V2);
    reopen();
    CHECK_EQ(count_max("150000 100000\n"), 2);
    CHECK_EQ(count_max("50000 100000\n"), 1);
    CHECK_EQ(count_max("1000 1000000\n"), 1);
    CHECK_EQ(count_max("100000 100000\n"), 1);
    CHECK_EQ(count_max("100001 100000\n"), 2);
    CHECK_EQ(count_max("200000 100000"), 2);
    tree_remove();
}

TEST(v2_no_limit)
{
    tree_make();
    put_proc("0::/job\n", MOUNT_V2);
    reopen();
    CHECK_EQ(count_max("max 100000\n"), FAKE_CPUS);
    CHECK_EQ(count_max("6400000 100000\n"), FAKE_CPUS);
    CHECK_EQ(count_max("9900000 100000\n"), FAKE_CPUS);
    CHECK_EQ(count_max("18446744073709551615 1\n"), FAKE_CPUS);
    tree_remove();
}

TEST(v2_malformed)
{
    static const char *const bad[] = {
        "",
        "\n",
        " ",
        "100000",
        "100000\n",
        "100000 \n",
        " 100000 100000\n",
        "100000  100000\n",
        "100000 100000 100000\n",
        "100000 100000x\n",
        "100000 100000\n\n",
        "0 100000\n",
        "100000 0\n",
        "-1 100000\n",
        "100000 -1\n",
        "0x10 100000\n",
        "max\n",
        "maximal 100000\n",
        "18446744073709551616 100000\n",
        "100000 99999999999999999999999\n",
        /* too long to be read whole; what would be read is a quota */
        "100000 000000000000000000000000000000000000000000000000001000000000\n",
    };

    tree_make();
    put_proc("0::/job\n", MOUNT_V2);
    reopen();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_EQ(count_max(bad[i]), FAKE_CPUS);
    CHECK_EQ(count_max("100000 100000\n"), 1);
    tree_remove();
}

TEST(v2_update_is_seen)
{
    char path[128];

    tree_make();
    put_proc("0::/a/job\n", MOUNT_V2);
    CHECK_EQ(reopen(), FAKE_CPUS);
    put("/sys/fs/cgroup/a/job/cpu.max", "200000 100000\n");
    CHECK_EQ(cpu_limit_count(&limit), 2);
    put("/sys/fs/cgroup/a/job/cpu.max", "500000 100000\n");
    CHECK_EQ(cpu_limit_count(&limit), 5);
    put("/sys/fs/cgroup/a/cpu.max", "400000 100000\n");
    CHECK_EQ(cpu_limit_count(&limit), 4);
    fake_cpus = 3;
    CHECK_EQ(cpu_limit_count(&limit), 3);
    fake_cpus = FAKE_CPUS;
    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/a/cpu.max", tree);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(cpu_limit_count(&limit), 5);
    tree_remove();
}

TEST(v2_smaller_ancestor)
{
    tree_make();
    put_proc("0::/a/b/c/d\n", MOUNT_V2);
    put("/sys/fs/cgroup/a/b/c/d/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    /* /a/b: no file, as where the controller is not enabled */
    put("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
    put("/sys/fs/cgroup/other/cpu.max", "100000 100000\n");
    CHECK_EQ(reopen(), 3);
    /* other periods: 1.9 CPUs */
    put("/sys/fs/cgroup/a/b/cpu.max", "19000 10000\n");
    CHECK_EQ(cpu_limit_count(&limit), 2);
    /* the mount point counts, what is above it does not */
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    CHECK_EQ(cpu_limit_count(&limit), 1);
    tree_remove();

    tree_make();
    put_proc("0::/a\n", MOUNT_V2);
    put("/sys/fs/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "700000 100000\n");
    CHECK_EQ(reopen(), 7);
    tree_remove();
}

TEST(v2_root_group)
{
    tree_make();
    put_proc("0::/\n", MOUNT_V2);
    CHECK_EQ(reopen(), FAKE_CPUS);
    CHECK_STR(dir(), "/sys/fs/cgroup");
    CHECK_EQ(limit.top_len, limit.dir_len);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_EQ(cpu_limit_count(&limit), 2);
    tree_remove();
}

TEST(v1)
{
    tree_make();
    put_proc("11:cpuset:/wrong\n4:cpuacct,cpu:/job/sub\n1:name=systemd:/wrong\n", MOUNT_V1);
    put_v1("/sys/fs/cgroup/cpu,cpuacct/job/sub", "450000\n", "100000\n");
    CHECK_EQ(reopen(), 5);
    CHECK_EQ(limit.cgroup, CPU_CGROUP_V1);
    CHECK_STR(dir(), "/sys/fs/cgroup/cpu,cpuacct/job/sub");
    put_v1("/sys/fs/cgroup/cpu,cpuacct/job/sub", "-1\n", "100000\n");
    CHECK_EQ(cpu_limit_count(&limit), FAKE_CPUS);
    put_v1("/sys/fs/cgroup/cpu,cpuacct/job", "30000\n", "20000\n");
    put_v1("/sys/fs/cgroup/cpu,cpuacct", "-1\n", "100000\n");
    CHECK_EQ(cpu_limit_count(&limit), 2);
    tree_remove();
}

TEST(v1_malformed)
{
    static const char *const bad[][2] = {
        {"", "100000\n"},          {"100000\n", ""},
        {"0\n", "100000\n"},       {"100000\n", "0\n"},
        {"100000 \n", "100000\n"}, {"100000\n", "100000us\n"},
        {"max\n", "100000\n"},     {"99999999999999999999\n", "100000\n"},
    };

    tree_make();
    put_proc("4:cpu:/job\n", MOUNT_V1);
    reopen();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put_v1("/sys/fs/cgroup/cpu,cpuacct/job", bad[i][0], bad[i][1]);
        CHECK_EQ(cpu_limit_count(&limit), FAKE_CPUS);
    }
    put_v1("/sys/fs/cgroup/cpu,cpuacct/job", "100000\n", "100000\n");
    CHECK_EQ(cpu_limit_count(&limit), 1);
    tree_remove();

    tree_make(); /* no period */
    put_proc("4:cpu:/job\n", MOUNT_V1);
    put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000\n");
    CHECK_EQ(reopen(), FAKE_CPUS);
    tree_remove();
}

#define MOUNT_UNIFIED "40 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

TEST(hybrid_v1_wins)
{
    tree_make();
    put_proc("0::/job\n4:cpu,cpuacct:/job\n", MOUNT_UNIFIED MOUNT_V1);
    put("/sys/fs/cgroup/unified/job/cpu.max", "200000 100000\n");
    put_v1("/sys/fs/cgroup/cpu,cpuacct/job", "700000\n", "100000\n");
    CHECK_EQ(reopen(), 7);
    CHECK_EQ(limit.cgroup, CPU_CGROUP_V1);
    tree_remove();
}

TEST(hybrid_v2_has_cpu)
{
    tree_make();
    /* v1 for other controllers only */
    put_proc("9:cpuset:/job\n0::/job\n", OTHERS
             "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
             "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n" MOUNT_UNIFIED);
    put("/sys/fs/cgroup/unified/job/cpu.max", "200000 100000\n");
    CHECK_EQ(reopen(), 2);
    /* v1 has the controller, but is not mounted */
    put("/proc/self/cgroup", "4:cpu:/job\n0::/job\n");
    CHECK_EQ(reopen(), 2);
    CHECK_EQ(limit.cgroup, CPU_CGROUP_V2);
    tree_remove();
}

/* A container without a cgroup namespace: host path, sub-tree mounted. */
TEST(root_field)
{
    tree_make();
    put_proc("0::/docker/abc/job\n",
             OTHERS "31 22 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n");
    put("/sys/fs/cgroup/job/cpu.max", "300000 100000\n");
    CHECK_EQ(reopen(), 3);
    CHECK_STR(dir(), "/sys/fs/cgroup/job");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_EQ(cpu_limit_count(&limit), 2);
    put("/proc/self/cgroup", "0::/docker/abc\n");
    CHECK_EQ(reopen(), 2);
    CHECK_STR(dir(), "/sys/fs/cgroup");
    /* a longer name is no descendant */
    put("/proc/self/cgroup", "0::/docker/abcd\n");
    CHECK_EQ(reopen(), FAKE_CPUS);
    CHECK_EQ(limit.cgroup, CPU_CGROUP_NONE);
    put("/proc/self/cgroup", "0::/docker\n");
    CHECK_EQ(reopen(), FAKE_CPUS);
    CHECK_EQ(limit.cgroup, CPU_CGROUP_NONE);
    tree_remove();
}

TEST(root_field_v1)
{
    tree_make();
    put_proc("4:cpu,cpuacct:/docker/abc\n",
             "33 31 0:30 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n");
    put_v1("/sys/fs/cgroup/cpu", "150000\n", "100000\n");
    CHECK_EQ(reopen(), 2);
    tree_remove();
}

/* Of several mounts the one with the most ancestors; equals: the first. */
TEST(root_field_shortest)
{
    tree_make();
    put_proc("0::/a/b/c\n", "31 22 0:28 /a/b /mnt/ab rw - cgroup2 cgroup2 rw\n"
                            "32 22 0:28 /x /mnt/x rw - cgroup2 cgroup2 rw\n"
                            "33 22 0:28 /a /mnt/a rw - cgroup2 cgroup2 rw\n"
                            "34 22 0:28 /a /mnt/a2 rw - cgroup2 cgroup2 rw\n"
                            "35 22 0:28 /a/b/c /mnt/abc rw - cgroup2 cgroup2 rw\n");
    reopen();
    CHECK_STR(dir(), "/mnt/a/b/c");
    tree_remove();
}

/* Paths seen from inside of a cgroup namespace. */
TEST(namespace)
{
    tree_make();
    put("/mnt/x/cpu.max", "200000 100000\n");
    put("/x/cpu.max", "100000 100000\n");
    /* we are outside of the namespace, the mount too: /.. is the same place */
    put_proc("0::/../x\n", "31 22 0:28 /.. /mnt rw - cgroup2 cgroup2 rw\n");
    CHECK_EQ(reopen(), 2);
    CHECK_STR(dir(), "/mnt/x");
    /* we are outside, the mount shows the inside: no leaving it by ".." */
    put_proc("0::/../x\n", "31 22 0:28 / /mnt rw - cgroup2 cgroup2 rw\n");
    CHECK_EQ(reopen(), FAKE_CPUS);
    CHECK_EQ(limit.cgroup, CPU_CGROUP_NONE);
    put_proc("0::/../..\n", "31 22 0:28 /.. /mnt rw - cgroup2 cgroup2 rw\n");
    CHECK_EQ(reopen(), FAKE_CPUS);
    /* the mount was made outside: our place in it has no name here */
    put_proc("0::/x\n", "31 22 0:28 /../.. /mnt rw - cgroup2 cgroup2 rw\n");
    CHECK_EQ(reopen(), FAKE_CPUS);
    /* dots that are names */
    put_proc("0::/..x/y..\n", "31 22 0:28 / /mnt rw - cgroup2 cgroup2 rw\n");
    put("/mnt/..x/y../cpu.max", "500000 100000\n");
    CHECK_EQ(reopen(), 5);
    tree_remove();
}

TEST(escapes)
{
    tree_make();
    /* mountinfo escapes, cgroup does not */
    put_proc("0::/a b\\040c/d:e\n",
             OTHERS "31 22 0:28 /a\\040b\\134040c /mnt/c\\011g\\040\\134x\\12 rw a:1 b:2 - "
                    "cgroup2 none rw\n");
    put("/mnt/c\tg \\x\\12/d:e/cpu.max", "300000 100000\n");
    CHECK_EQ(reopen(), 3);
    CHECK_STR(dir(), "/mnt/c\tg \\x\\12/d:e");
    tree_remove();
}

TEST(proc_malformed)
{
    static const char *const groups[] = {
        "", "\n", "0", "0:", "0::", "0::\n", "0::job\n", ":::\n", "1::/job\n", "0:x:/job\n",
    };
    static const char *const mounts[] = {
        "",
        "\n\n",
        "31",
        "31 22 0:28 / /mnt rw\n",
        "31 22 0:28 / /mnt rw -\n",
        "31 22 0:28 / /mnt rw - cgroup2\n",
        "31 22 0:28 / /mnt rw - cgroup2 cgroup2\n",
        "31 22 0:28 / /mnt - cgroup2 cgroup2 rw\n",
        "31 22 0:28 job /mnt rw - cgroup2 cgroup2 rw\n",
        "31 22 0:28 / mnt rw - cgroup2 cgroup2 rw\n",
        "31 22 0:28 / /mnt rw - cgroup2x cgroup2 rw\n",
        "31 22 0:28 / /mnt rw - cgroup cgroup2 rw\n",
    };
    const char *good = "31 22 0:28 / /mnt rw - cgroup2 cgroup2 rw";

    tree_make();
    put("/mnt/job/cpu.max", "200000 100000\n");
    put_proc("0::/job", good); /* also without a newline at the end */
    CHECK_EQ(reopen(), 2);
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        put("/proc/self/cgroup", groups[i]);
        CHECK_EQ(reopen(), FAKE_CPUS);
        CHECK_EQ(limit.cgroup, CPU_CGROUP_NONE);
    }
    put("/proc/self/cgroup", "0::/job\n");
    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
        put("/proc/self/mountinfo", mounts[i]);
        CHECK_EQ(reopen(), FAKE_CPUS);
        CHECK_EQ(limit.cgroup, CPU_CGROUP_NONE);
    }
    tree_remove();
}

TEST(missing)
{
    char path[128];

    tree_make();
    CHECK_EQ(reopen(), FAKE_CPUS); /* nothing at all */
    put("/proc/self/cgroup", "0::/job\n");
    CHECK_EQ(reopen(), FAKE_CPUS); /* no mountinfo */
    put("/proc/self/mountinfo", MOUNT_V2);
    CHECK_EQ(reopen(), FAKE_CPUS); /* no cgroup tree */
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", tree);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(reopen(), FAKE_CPUS); /* no cgroup file */
    put("/proc/self/cgroup", "0::/job\n");
    put("/sys/fs/cgroup/job/cpu.max/is_a_directory", "");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_EQ(reopen(), 2); /* one level unreadable, the next counts */
    tree_remove();
}

/* Lines and paths at the edge of the buffers. */
TEST(long_lines)
{
    static char text[40000];
    size_t n;

    tree_make();
    put("/mnt/job/cpu.max", "200000 100000\n");
    put("/proc/self/cgroup", "0::/job\n");
    /* a long line before ours is passed over, of every length near the limit */
    for (size_t len = 4000; len < 4200; len += len >= 4085 && len < 4105 ? 1 : 50) {
        memset(text, 'x', len);
        strcpy(text + len, "\n31 22 0:28 / /mnt rw - cgroup2 cgroup2 rw\n");
        put("/proc/self/mountinfo", text);
        CHECK_EQ(reopen(), 2);
    }
    memset(text, 'x', 30000);
    strcpy(text + 30000, "\n31 22 0:28 / /mnt rw - cgroup2 cgroup2 rw\n");
    put("/proc/self/mountinfo", text);
    CHECK_EQ(reopen(), 2);
    /* the end of a long line is not taken for a line */
    strcpy(text + 30000, "31 22 0:28 / /mnt rw - cgroup2 cgroup2 rw");
    put("/proc/self/mountinfo", text);
    CHECK_EQ(reopen(), FAKE_CPUS);
    /* nor is its beginning */
    n = (size_t)sprintf(text, "31 22 0:28 / /mnt rw - cgroup2 cgroup2 rw,");
    memset(text + n, 'x', 5000);
    strcpy(text + n + 5000, "\n");
    put("/proc/self/mountinfo", text);
    CHECK_EQ(reopen(), FAKE_CPUS);
    /* a group of nearly a whole line: dir is too long, or fits and is absent */
    put("/proc/self/mountinfo", MOUNT_V2);
    for (size_t len = 3950; len < 4110; len++) {
        n = (size_t)sprintf(text, "0::");
        memset(text + n, '/', len);
        for (size_t i = 1; i < len; i += 2)
            text[n + i] = 'y';
        text[n + len] = '\0';
        put("/proc/self/cgroup", text);
        CHECK_EQ(reopen(), FAKE_CPUS);
        CHECK(limit.dir_len < CPU_PATH_SIZE);
        CHECK_EQ(strlen(limit.dir), limit.dir_len);
    }
    CHECK_EQ(limit.cgroup, CPU_CGROUP_NONE);
    tree_remove();
}

TEST(root_too_long)
{
    static char root[5000];

    for (size_t len = 450; len < sizeof(root) - 1; len += len < 600 ? 1 : 500) {
        memset(root, '/', len);
        root[len] = '\0';
        cpu_limit_open_at(&limit, root);
        CHECK(cpu_limit_count(&limit) >= 1);
        CHECK(limit.dir_len < CPU_PATH_SIZE);
    }
    CHECK_EQ(limit.cgroup, CPU_CGROUP_NONE);
}

TEST(affinity_sizes)
{
    static const int sizes[][2] = {
        {1, 1},       {2, 2},       {63, 63},      {65, 65},        {1023, 1023},    {1024, 1024},
        {1025, 1024}, {8192, 1024}, {65536, 1024}, {FAKE_FAILS, 1}, {FAKE_EMPTY, 1},
    };

    tree_make();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        fake_cpus = sizes[i][0];
        CHECK_EQ(reopen(), sizes[i][1]);
    }
    tree_remove();
}

TEST(affinity_one_cpu)
{
    cpu_set_t before, one;
    size_t cpu = 0;

    fake_cpus = FAKE_OFF;
    if (sched_getaffinity(0, sizeof(before), &before) < 0)
        SKIP("more than 1024 CPUs");
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0)
        SKIP("sched_setaffinity is not permitted");
    CHECK_EQ(cpu_count(), 1);
    CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
    CHECK(cpu_count() <= CPU_COUNT(&before));
}

/* The machine we run on: whatever it is, nothing leaks and the range holds. */
TEST(real_system)
{
    int fd_before, fd_after;

    fake_cpus = FAKE_OFF;
    fd_before = open("/dev/null", O_RDONLY);
    CHECK(fd_before >= 0);
    close(fd_before);
    cpu_limit_open(&limit);
    for (int i = 0; i < 100; i++) {
        int n = cpu_limit_count(&limit);

        CHECK(n >= 1 && n <= CPU_COUNT_MAX);
    }
    CHECK(cpu_count() >= 1);
    fd_after = open("/dev/null", O_RDONLY);
    CHECK_EQ(fd_after, fd_before);
    close(fd_after);
}
