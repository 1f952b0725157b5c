/* SPDX-License-Identifier: MIT */
/*
 * The number of CPUs this process may use.
 *
 * Purpose: the default number of Ps is the number of CPUs in the affinity
 * mask, limited by the CPU quota of the cgroup (rounded up), at least 1 and at
 * most CPU_COUNT_MAX. More Ps than quota would spend the quota of a period in
 * its first part and then stand still, all at once, until the next.
 *
 * How the quota is found:
 *   /proc/self/cgroup     names our cgroup, as a path in its hierarchy;
 *   /proc/self/mountinfo  says which part of the hierarchy (root field) is
 *                         mounted where (mount point);
 *   mount point + (our path without root) is the directory to read. A limit of
 * an ancestor binds us too, so every directory from ours up to the mount point
 * is read and the smallest quota wins.
 *   Of several mounts the one that shows the most ancestors is taken. The v1
 * cpu controller wins over v2 if it is mounted: a controller lives in one
 * hierarchy only, and v2 shows no cpu.max then.
 *
 * State: struct cpu_limit, constant after open. No globals, no locks.
 *
 * Invariants
 *   1. No answer is below 1 or above CPU_COUNT_MAX.
 *   2. Whatever the files hold, the worst outcome is "no limit".
 *   3. No malloc, no stdio, at most 16 KB of stack: the monitor thread calls.
 *   4. A path read never leaves the mount point ("..": see path_below).
 *
 * Rejected
 *   - sysconf(_SC_NPROCESSORS_ONLN): knows neither affinity nor quota, and may
 *     allocate.
 *   - Starting with a 1024-CPU mask and growing it: one mask larger than any
 *     kernel's costs the same single call and needs no loop.
 *   - Open descriptors kept for the quota files: one for each ancestor, and a
 *     program that closes all its descriptors would close them or, worse, make
 *     us read another file. Opening a few files each second costs nothing.
 *   - Remembering only the levels that had a quota file: v2 makes cpu.max
 *     appear when the controller is enabled later.
 *   - A cgroup that the process is moved to later: found only by a new open.
 *
 * Difference from Go (1.25): Go reads the process's own cgroup only, not the
 * ancestors; and it raises a quota below 2 to 2 where there are more CPUs. A
 * quota of one CPU gives one P here.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE_SIZE = 4096,      /* a longer line is skipped */
    CHUNK_SIZE = 1024,     /* bytes asked of the kernel at once */
    PROC_PATH_SIZE = 512,  /* root + "/proc/self/..." */
    QUOTA_FILE_SIZE = 64,  /* two 64-bit numbers need 42 */
    QUOTA_NAME_SIZE = 32,  /* "/cpu.cfs_period_us" */
    MASK_CPUS = 64 * 1024, /* Linux is built for 8192 CPUs at most */
    NO_LIMIT = INT_MAX,
};

/* A file read by lines; on the stack of cpu_limit_open_at, its largest part. */
struct scan {
    int fd;
    size_t pos, len; /* unread bytes are chunk[pos .. len) */
    char chunk[CHUNK_SIZE];
    char line[LINE_SIZE];
};

_Static_assert(sizeof(struct scan) + LINE_SIZE + PROC_PATH_SIZE + sizeof(struct cpu_limit) < 15360,
               "cpu_count must fit 16 KB of stack");

/*
 * Files.
 */

static int file_open(const char *path)
{
    int fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* Returns the number of bytes, 0 at the end, or -errno. */
static ssize_t file_read(int fd, char *buf, size_t size)
{
    ssize_t n;

    do
        n = read(fd, buf, size);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/*
 * Reads a file of less than `size` bytes as a string. A larger one is -EFBIG:
 * half a number is not a number.
 */
static int file_slurp(const char *path, char *buf, size_t size)
{
    size_t len = 0;
    ssize_t n = 0;
    int fd = file_open(path);

    if (fd < 0)
        return fd;
    while (len < size) {
        n = file_read(fd, buf + len, size - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    close(fd);
    if (n < 0)
        return (int)n;
    if (len == size)
        return -EFBIG;
    buf[len] = '\0';
    return 0;
}

static int scan_open(struct scan *sc, const char *root, const char *name)
{
    char path[PROC_PATH_SIZE];
    size_t root_len = strlen(root), name_size = strlen(name) + 1;

    if (root_len >= sizeof(path) || name_size > sizeof(path) - root_len)
        return -ENAMETOOLONG;
    memcpy(path, root, root_len + 1);
    memcpy(path + root_len, name, name_size);
    sc->pos = sc->len = 0;
    sc->fd = file_open(path);
    return sc->fd < 0 ? sc->fd : 0;
}

static void scan_close(struct scan *sc)
{
    close(sc->fd);
}

/*
 * Puts the next line, without its newline, into sc->line. Lines that do not
 * fit are skipped (an overlay mount of many layers; never a cgroup in practice).
 * A read error ends the file: what was found before it still counts.
 */
static bool scan_next(struct scan *sc)
{
    size_t used = 0;
    bool whole = true;

    for (;;) {
        if (sc->pos == sc->len) {
            ssize_t n = file_read(sc->fd, sc->chunk, sizeof(sc->chunk));

            if (n <= 0) {
                sc->line[used] = '\0';
                return n == 0 && used > 0 && whole;
            }
            sc->pos = 0;
            sc->len = (size_t)n;
        }

        char c = sc->chunk[sc->pos++];

        if (c == '\n') {
            if (whole) {
                sc->line[used] = '\0';
                return true;
            }
            used = 0;
            whole = true;
        } else if (used < sizeof(sc->line) - 1) {
            sc->line[used++] = c;
        } else {
            whole = false;
        }
    }
}

/*
 * Words and paths.
 */

/*
 * Cuts the text before `sep` off *rest. Without a `sep` the word is all that
 * is left, and the next call gives NULL.
 */
static char *cut(char **rest, char sep)
{
    char *word = *rest, *end;

    if (word == NULL)
        return NULL;
    end = strchr(word, sep);
    *rest = NULL;
    if (end != NULL) {
        *end = '\0';
        *rest = end + 1;
    }
    return word;
}

/* Is `word` one of the names of a list like "rw,cpu,cpuacct"? */
static bool list_has(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = list; p != NULL;) {
        if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == '\0'))
            return true;
        p = strchr(p, ',');
        if (p != NULL)
            p++;
    }
    return false;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Decodes in place the \ooo by which mountinfo writes space, tab, newline, \. */
static void unescape(char *s)
{
    char *out = s;

    while (*s != '\0') {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && is_octal(s[2]) && is_octal(s[3])) {
            unsigned v =
                (unsigned)(s[1] - '0') << 6 | (unsigned)(s[2] - '0') << 3 | (unsigned)(s[3] - '0');

            *out++ = (char)v;
            s += 4;
        } else {
            *out++ = *s++;
        }
    }
    *out = '\0';
}

/* Length without the slashes at the end; "/" has length 0. */
static size_t path_len(const char *path)
{
    size_t len = strlen(path);

    while (len > 0 && path[len - 1] == '/')
        len--;
    return len;
}

static bool path_climbs(const char *path)
{
    for (const char *p = strstr(path, ".."); p != NULL; p = strstr(p + 1, ".."))
        if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
            return true;
    return false;
}

/*
 * The part of cgroup path `group` below `root`, "" or "/...", or NULL if it is
 * not below. In a cgroup namespace both are relative to the namespace: a group
 * outside of it begins with "/..", and so does the root of a mount made
 * outside. "/.." means the same directory in both, so it may be the common
 * part; in what is left over it would lead out of the mount.
 */
static const char *path_below(const char *group, const char *root)
{
    size_t len = path_len(root);

    if (strncmp(group, root, len) != 0)
        return NULL;
    group += len;
    if (*group != '/' && *group != '\0')
        return NULL;
    return path_climbs(group) ? NULL : group;
}

/*
 * The cgroup.
 */

/*
 * Copies the path of our cgroup from /proc/self/cgroup. A line is
 * "id:controllers:path"; v2 has id 0 and no controllers. The path is written
 * without escapes and may hold colons.
 */
static bool find_group(struct scan *sc, const char *root, enum cpu_cgroup version,
                       char group[static LINE_SIZE])
{
    bool found = false;

    if (scan_open(sc, root, "/proc/self/cgroup") < 0)
        return false;
    while (!found && scan_next(sc)) {
        char *rest = sc->line;
        const char *id = cut(&rest, ':');
        const char *list = cut(&rest, ':');

        if (list == NULL || rest == NULL || rest[0] != '/')
            continue;
        if (version == CPU_CGROUP_V2)
            found = strcmp(id, "0") == 0 && list[0] == '\0';
        else
            found = list_has(list, "cpu");
        if (found)
            memcpy(group, rest, strlen(rest) + 1);
    }
    scan_close(sc);
    return found;
}

/*
 * Takes a line of mountinfo apart:
 *   36 35 0:28 /root /mount/point rw,noatime [optional]... - fstype source super
 * Returns true if it is a mount of the cpu controller.
 */
static bool parse_mount(char *line, enum cpu_cgroup version, char **root, char **point)
{
    char *rest = line;
    const char *word, *type, *super;

    for (int i = 0; i < 3; i++)
        cut(&rest, ' ');
    *root = cut(&rest, ' ');
    *point = cut(&rest, ' ');
    cut(&rest, ' ');
    do
        word = cut(&rest, ' ');
    while (word != NULL && strcmp(word, "-") != 0);
    type = cut(&rest, ' ');
    cut(&rest, ' ');
    super = cut(&rest, ' ');
    if (super == NULL)
        return false;
    if (version == CPU_CGROUP_V2) {
        if (strcmp(type, "cgroup2") != 0)
            return false;
    } else if (strcmp(type, "cgroup") != 0 || !list_has(super, "cpu")) {
        return false;
    }
    unescape(*root);
    unescape(*point);
    return (*root)[0] == '/' && (*point)[0] == '/';
}

/* dir = prefix + point + below. Leaves the limit as it was if that is too long. */
static bool limit_set(struct cpu_limit *limit, const char *prefix, const char *point,
                      const char *below)
{
    size_t prefix_len = strlen(prefix), point_len = path_len(point);
    size_t below_len = path_len(below), max = sizeof(limit->dir) - 1;

    /* The last two come from lines, so that the sum cannot wrap. */
    if (prefix_len > max || point_len + below_len > max - prefix_len)
        return false;
    memcpy(limit->dir, prefix, prefix_len);
    memcpy(limit->dir + prefix_len, point, point_len);
    limit->top_len = prefix_len + point_len;
    memcpy(limit->dir + limit->top_len, below, below_len);
    limit->dir_len = limit->top_len + below_len;
    limit->dir[limit->dir_len] = '\0';
    return true;
}

/*
 * Fills the limit from the mount of this version that shows our cgroup. The
 * shorter the root, the more ancestors are seen; among equals the first wins.
 */
static void find_mount(struct cpu_limit *limit, struct scan *sc, const char *prefix,
                       enum cpu_cgroup version, const char *group)
{
    size_t best = SIZE_MAX;

    if (scan_open(sc, prefix, "/proc/self/mountinfo") < 0)
        return;
    while (scan_next(sc)) {
        char *root, *point;

        if (!parse_mount(sc->line, version, &root, &point))
            continue;

        const char *below = path_below(group, root);

        if (below == NULL || path_len(root) >= best)
            continue;
        if (limit_set(limit, prefix, point, below)) {
            limit->cgroup = version;
            best = path_len(root);
        }
    }
    scan_close(sc);
}

/*
 * The quota.
 */

/* Reads digits at *s and moves it past them. False: no digit, or over 64 bits. */
static bool parse_u64(const char **s, uint64_t *value)
{
    const char *p = *s;
    uint64_t v = 0;

    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v)
            || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    *s = p;
    *value = v;
    return true;
}

static bool at_end(const char *s)
{
    return s[0] == '\0' || (s[0] == '\n' && s[1] == '\0');
}

static int quota_cpus(uint64_t quota, uint64_t period)
{
    uint64_t cpus;

    if (quota == 0 || period == 0)
        return NO_LIMIT; /* the kernel writes neither */
    cpus = quota / period + (quota % period != 0);
    return cpus > CPU_COUNT_MAX ? CPU_COUNT_MAX : (int)cpus;
}

/* cpu.max: "150000 100000", or "max 100000" for none. */
static int quota_parse_v2(const char *s)
{
    uint64_t quota, period;

    if (!parse_u64(&s, &quota) || *s++ != ' ' || !parse_u64(&s, &period) || !at_end(s))
        return NO_LIMIT;
    return quota_cpus(quota, period);
}

/* cpu.cfs_quota_us: microseconds, or -1 for none; cpu.cfs_period_us. */
static int quota_parse_v1(const char *quota_text, const char *period_text)
{
    uint64_t quota, period;

    if (!parse_u64(&quota_text, &quota) || !at_end(quota_text) || !parse_u64(&period_text, &period)
        || !at_end(period_text))
        return NO_LIMIT;
    return quota_cpus(quota, period);
}

/* The file `name` of the directory path[0 .. len); path has room for the name. */
static int quota_slurp(char *path, size_t len, const char *name, char text[QUOTA_FILE_SIZE])
{
    memcpy(path + len, name, strlen(name) + 1);
    return file_slurp(path, text, QUOTA_FILE_SIZE);
}

/* The quota of the one directory path[0 .. len). Writes over what follows it. */
static int quota_at(enum cpu_cgroup version, char *path, size_t len)
{
    char a[QUOTA_FILE_SIZE], b[QUOTA_FILE_SIZE];

    if (version == CPU_CGROUP_V2) {
        if (quota_slurp(path, len, "/cpu.max", a) < 0)
            return NO_LIMIT;
        return quota_parse_v2(a);
    }
    if (quota_slurp(path, len, "/cpu.cfs_quota_us", a) < 0
        || quota_slurp(path, len, "/cpu.cfs_period_us", b) < 0)
        return NO_LIMIT;
    return quota_parse_v1(a, b);
}

/* The smallest quota from our cgroup up to the mount point, both included. */
static int quota_count(const struct cpu_limit *limit)
{
    char path[CPU_PATH_SIZE + QUOTA_NAME_SIZE];
    size_t len = limit->dir_len;
    int least = NO_LIMIT;

    if (limit->cgroup == CPU_CGROUP_NONE)
        return NO_LIMIT;
    memcpy(path, limit->dir, len);
    for (;;) {
        int cpus = quota_at(limit->cgroup, path, len);

        if (cpus < least)
            least = cpus;
        if (len == limit->top_len)
            return least;
        while (len > limit->top_len && path[len - 1] != '/')
            len--;
        while (len > limit->top_len && path[len - 1] == '/')
            len--;
    }
}

/*
 * CPUs in the mask of the calling thread; 1 if the kernel does not say. The
 * mask of the main thread (by pid) would be no better: threads inherit their
 * creator's, and a program that pins its main thread did not pin us. Not
 * inlined: its 8 KB must not lie below those of cpu_limit_open_at.
 */
__attribute__((noinline)) static int affinity_count(void)
{
    unsigned long mask[MASK_CPUS / (8 * sizeof(unsigned long))];
    cpu_set_t *set = (cpu_set_t *)mask;

    if (sched_getaffinity(0, sizeof(mask), set) < 0)
        return 1;
    return CPU_COUNT_S(sizeof(mask), set);
}

void cpu_limit_open_at(struct cpu_limit *limit, const char *root)
{
    static const enum cpu_cgroup order[] = {CPU_CGROUP_V1, CPU_CGROUP_V2};
    struct scan sc;
    char group[LINE_SIZE];

    limit->cgroup = CPU_CGROUP_NONE;
    limit->top_len = limit->dir_len = 0;
    limit->dir[0] = '\0';
    for (size_t i = 0; i < 2 && limit->cgroup == CPU_CGROUP_NONE; i++)
        if (find_group(&sc, root, order[i], group))
            find_mount(limit, &sc, root, order[i], group);
}

void cpu_limit_open(struct cpu_limit *limit)
{
    cpu_limit_open_at(limit, "");
}

int cpu_limit_count(const struct cpu_limit *limit)
{
    int count = affinity_count(), quota = quota_count(limit);

    if (quota < count)
        count = quota;
    if (count > CPU_COUNT_MAX)
        count = CPU_COUNT_MAX;
    return count < 1 ? 1 : count;
}

int cpu_count(void)
{
    struct cpu_limit limit;

    cpu_limit_open(&limit);
    return cpu_limit_count(&limit);
}
