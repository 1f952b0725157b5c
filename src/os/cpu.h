/* SPDX-License-Identifier: MIT */
/*
 * How many CPUs this process may use: the default number of Ps.
 * Design note: cpu.c.
 */
#ifndef PIRN_OS_CPU_H
#define PIRN_OS_CPU_H

#include <stddef.h>

enum {
    CPU_COUNT_MAX = 1024, /* never more Ps than this by default */
    CPU_PATH_SIZE = 4096, /* longest cgroup directory, with its NUL */
};

enum cpu_cgroup {
    CPU_CGROUP_NONE, /* no cpu controller in sight: affinity alone counts */
    CPU_CGROUP_V1,   /* cpu.cfs_quota_us and cpu.cfs_period_us */
    CPU_CGROUP_V2,   /* cpu.max */
};

/*
 * Where the quota of this process is written down. Constant after
 * cpu_limit_open; holds no descriptor, so it needs no close, may be copied,
 * and stays valid in the child after fork.
 */
struct cpu_limit {
    enum cpu_cgroup cgroup;
    size_t top_len;          /* dir[0 .. top_len) is the mount point */
    size_t dir_len;          /* dir[0 .. dir_len) is our own cgroup */
    char dir[CPU_PATH_SIZE]; /* NUL-terminated, no '/' at the end */
};

/*
 * Finds the cgroup of this process. Cannot fail: what is missing, unreadable
 * or malformed leaves a limit that limits nothing. Blocks in file reads only;
 * any thread; no malloc, no stdio, at most 16 KB of stack.
 */
void cpu_limit_open(struct cpu_limit *limit);

/*
 * The same with every path below `root`, for tests: "" is the real system.
 * The affinity is always the real one.
 */
void cpu_limit_open_at(struct cpu_limit *limit, const char *root);

/*
 * CPUs that the calling thread may use now, 1 .. CPU_COUNT_MAX: affinity and
 * quota are read again at each call. Same rules as cpu_limit_open; calls may
 * run at the same time. Changes errno.
 */
int cpu_limit_count(const struct cpu_limit *limit);

/* cpu_limit_open and cpu_limit_count in one, for the start of the runtime. */
int cpu_count(void);

#endif
