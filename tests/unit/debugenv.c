/* SPDX-License-Identifier: MIT */
/*
 * PIRN_PROCS and PIRN_DEBUG: what they set, that a word which means nothing is said and ignored, and that a
 * program with more rights than who starts it does not read them (conformance 152).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "os/cpu.h"
#include "sched/sched.h"
#include "temp.h"

struct reading {
    const char *procs, *debug; /* NULL: not set */
    struct debug_env want;
    const char *says;
};

static void set(const char *name, const char *value)
{
    CHECK_EQ(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void read_in_child(void *arg)
{
    const struct reading *r = arg;
    struct debug_env env;
    set("PIRN_PROCS", r->procs);
    set("PIRN_DEBUG", r->debug);
    debug_env_read(&env);
    CHECK_EQ(env.procs, r->want.procs);
    CHECK_EQ(env.guard, r->want.guard);
    CHECK_EQ(env.move, r->want.move);
    CHECK_EQ(env.thread_idle_most, r->want.thread_idle_most);
    CHECK_EQ(env.io, r->want.io);
    CHECK_EQ(env.io_says, r->want.io_says);
}

static void check_readings(const struct reading *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int status = test_in_child(read_in_child, (void *)(uintptr_t)&r[i]);
        CHECK_STR(test_said, r[i].says ? r[i].says : "");
        CHECK_EQ(status, 0);
    }
}

TEST(good_words)
{
    static const struct reading good[] = {
        {.says = NULL},
        {.procs = "", .debug = ""},
        {.procs = "1", .want = {.procs = 1}},
        {.procs = "1024", .want = {.procs = PROCS_MAX}},
        {.debug = "guard=auto", .want = {.guard = GUARD_AUTO}},
        {.debug = "guard=madvise", .want = {.guard = GUARD_MADVISE}},
        {.debug = "guard=mprotect", .want = {.guard = GUARD_MPROTECT}},
        {.debug = "guard=none", .want = {.guard = GUARD_NONE}},
        {.debug = "move=1", .want = {.move = true}},
        {.debug = "move=0"},
        {.debug = "idle=600", .want = {.thread_idle_most = 600 * PIRN_MS}},
        {.debug = "io=1", .want = {.io_says = true}},
        {.debug = "io=0"},
        {.debug = "io=epoll", .want = {.io = PIRN_IO_EPOLL}},
        {.debug = "io=uring,io=1", .want = {.io = PIRN_IO_URING, .io_says = true}},
        {.procs = "7",
         .debug = "move=1,guard=none",
         .want = {.guard = GUARD_NONE, .move = true, .procs = 7}},
        {.debug = "guard=none,,move=1,", .want = {.guard = GUARD_NONE, .move = true}},
        {.debug = "move=1,move=0,guard=none,guard=mprotect", .want = {.guard = GUARD_MPROTECT}},
    };
    check_readings(good, ARRAY_LEN(good));
}

#define NO_PROCS(text)                                                                             \
    {                                                                                              \
        .procs = (text),                                                                           \
        .says = "pirn: PIRN_PROCS=" text " is not a number from 1 to 1024: ignored\n"              \
    }

TEST(bad_procs)
{
    static const struct reading bad[] = {
        NO_PROCS("0"),    NO_PROCS("-1"),  NO_PROCS("1025"),
        NO_PROCS("many"), NO_PROCS("4x"),  NO_PROCS("4 "),
        NO_PROCS("0x10"), NO_PROCS("1.5"), NO_PROCS("18446744073709551617"), /* 2^64 + 1 */
    };
    check_readings(bad, ARRAY_LEN(bad));
}

#define NO_WORD(text) "pirn: PIRN_DEBUG: " text " means nothing here: ignored\n"
#define LONG_WORD "a-word-of-63-characters-is-shown-whole-and-longer-ones-are-cut-"

/* The other words count all the same, and so do the Ps. */
TEST(bad_debug)
{
    static const struct reading bad[] = {
        {.debug = "nonsense", .says = NO_WORD("nonsense")},
        {.debug = "guard", .says = NO_WORD("guard")},
        {.debug = "guard=", .says = NO_WORD("guard=")},
        {.debug = "guard=hard", .says = NO_WORD("guard=hard")},
        {.debug = "GUARD=none", .says = NO_WORD("GUARD=none")},
        {.debug = "move", .says = NO_WORD("move")},
        {.debug = "move=2", .says = NO_WORD("move=2")},
        {.debug = "idle=0", .says = NO_WORD("idle=0")},
        {.debug = "idle=", .says = NO_WORD("idle=")},
        {.debug = "idle=1s", .says = NO_WORD("idle=1s")},
        {.debug = "=1", .says = NO_WORD("=1")},
        {.debug = " move=1", .says = NO_WORD(" move=1")},
        {.debug = LONG_WORD "cut=1", .says = NO_WORD(LONG_WORD)},
        {.debug = "schedtrace=1000,guard=none,preempt=maybe,move=1",
         .want = {.guard = GUARD_NONE, .move = true},
         .says = NO_WORD("schedtrace=1000") NO_WORD("preempt=maybe")},
        {.procs = "3",
         .debug = "guard=none,guard=hard",
         .want = {.guard = GUARD_NONE, .procs = 3},
         .says = NO_WORD("guard=hard")},
    };
    check_readings(bad, ARRAY_LEN(bad));
}

/* --- and the runtime starts -------------------------------------------------------------------------- */

static int is_as_asked(void *arg)
{
    const struct reading *r = arg;
    CHECK_EQ(pirn_procs(0), r->want.procs ? r->want.procs : cpu_count());
    CHECK_EQ(sched.move, r->want.move);
    return 0;
}

static void run_in_child(void *arg)
{
    const struct reading *r = arg;
    set("PIRN_PROCS", r->procs);
    set("PIRN_DEBUG", r->debug);
    CHECK_EQ(pirn_run(is_as_asked, arg), 0);
}

static int has_two_procs(void *arg)
{
    (void)arg;
    CHECK_EQ(pirn_procs(0), 2);
    return 0;
}

static void config_in_child(void *arg)
{
    (void)arg;
    set("PIRN_PROCS", "none");
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 2}, has_two_procs, NULL), 0);
    set("PIRN_PROCS", "3"); /* what the program says counts */
    CHECK_EQ(pirn_run_config(&(pirn_config){.procs = 2}, has_two_procs, NULL), 0);
}

TEST(runs_with_bad_words)
{
    struct reading bad = NO_PROCS("none"), good = {.procs = "3", .want = {.procs = 3}};
    CHECK_EQ(test_in_child(run_in_child, &bad), 0);
    CHECK_STR(test_said, bad.says);
    good.debug = "move=1,mvoe=1";
    good.want.move = true;
    CHECK_EQ(test_in_child(run_in_child, &good), 0);
    CHECK_STR(test_said, NO_WORD("mvoe=1"));
    CHECK_EQ(test_in_child(config_in_child, NULL), 0);
    CHECK_STR(test_said, bad.says);
}

/* A bad value leaves what was set before it. */
TEST(bad_move)
{
    static const struct reading r[] = {
        {.debug = "move=1,move=yes", .want = {.move = true}, .says = NO_WORD("move=yes")}};
    check_readings(r, 1);
}

TEST(too_long)
{
    static char text[400];
    for (int i = 0; i < 128; i++)
        memcpy(text + 2 * i, ",,", 2);
    strcpy(text + 256, "move=1");
    struct reading r = {
        .debug = text,
        .says = "pirn: PIRN_DEBUG: too long: what is behind 255 characters is ignored\n"};
    check_readings(&r, 1);
}

/* --- more rights than who starts it ------------------------------------------------------------- */

#define AGAIN "PIRN_TEST_AGAIN"

static int counts_procs(void *arg)
{
    (void)arg;
    return pirn_procs(0) == 7 ? 3 : 4;
}

/* A copy of this program that belongs to somebody else, and runs as that one. */
static void copy_of_program(char path[TEMP_PATH])
{
    char part[65536];
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        to = open(temp_path(path), O_WRONLY | O_CLOEXEC);
    CHECK(from >= 0 && to >= 0);
    for (ssize_t n; (n = read(from, part, sizeof part)) != 0;) {
        CHECK_GT(n, 0);
        CHECK_EQ(write(to, part, (size_t)n), n);
    }
    CHECK_EQ(fchmod(to, 0755), 0);
    CHECK_EQ(close(from), 0);
    CHECK_EQ(close(to), 0);
}

enum { CANNOT_EXEC = 98 };

static int run_again(const char *path)
{
    int status;
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        setenv(AGAIN, "1", 1);
        setenv("PIRN_PROCS", "7", 1);
        execl(path, path, "environment_of_others", (char *)NULL);
        _exit(errno == ENOEXEC ? CANNOT_EXEC : 99);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* What stands in the environment is for who may do that anyway. */
TEST(environment_of_others)
{
    char path[TEMP_PATH];
    if (getenv(AGAIN))
        _exit(pirn_run(counts_procs, NULL));
    if (TEST_ASAN || TEST_TSAN)
        SKIP("sanitizers read their options there");
    if (geteuid() != 0)
        SKIP("only root can give a program to somebody else");
    copy_of_program(path);
    int plain = run_again(path);
    int err = chown(path, 65534, 65534) || chmod(path, 04755);
    int secure = err ? -1 : run_again(path);
    CHECK_EQ(unlink(path), 0);
    if (plain == CANNOT_EXEC)
        SKIP("programs for this processor are run by an emulator, which is not called by exec");
    CHECK_EQ(plain, 3);
    if (secure == 3)
        SKIP("programs do not get the rights of their owners here");
    CHECK_EQ(secure, 4);
}
