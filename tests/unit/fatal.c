/* SPDX-License-Identifier: MIT */
/* The small formatter, and the three ways to end the process. */
#include "base/fatal.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static char buf[4096];

#define CHECK_FMT(want, ...)                                                                       \
    do {                                                                                           \
        memset(buf, 'x', sizeof buf);                                                              \
        size_t len_ = fmt(buf, sizeof buf, __VA_ARGS__);                                           \
        CHECK_STR(buf, want);                                                                      \
        CHECK_EQ(len_, strlen(want));                                                              \
    } while (0)

TEST(conversions)
{
    CHECK_FMT("", "%s", "");
    CHECK_FMT("plain", "plain");
    CHECK_FMT("a<b>c", "a<%s>%c", "b", 'c');
    CHECK_FMT("100%", "%d%%", 100);
    CHECK_FMT("0 1 -1", "%d %i %d", 0, 1, -1);
    CHECK_FMT("4294967295", "%u", UINT_MAX);
    CHECK_FMT("0 ff deadbeef", "%x %x %x", 0u, 255u, 0xdeadbeefu);
    CHECK_FMT("-1 1", "%ld %ld", -1L, 1L);
    CHECK_FMT("18446744073709551615", "%lu", ULONG_MAX);
    CHECK_FMT("-1 7", "%lld %llu", -1LL, 7ULL);
    CHECK_FMT("0 18446744073709551615", "%zu %zu", (size_t)0, SIZE_MAX);
    CHECK_FMT("ffffffffffffffff", "%lx", ULONG_MAX);
    CHECK_FMT("0x1234 0x0", "%p %p", (void *)0x1234, (void *)0);
    CHECK_FMT("0xffffffffffffffff", "%p", (void *)UINTPTR_MAX);
}

TEST(limits)
{
    CHECK_FMT("-2147483648 2147483647", "%d %d", INT_MIN, INT_MAX);
    CHECK_FMT("-9223372036854775808", "%ld", (long)INT64_MIN);
    CHECK_FMT("9223372036854775807", "%ld", (long)INT64_MAX);
    CHECK_FMT("1 -2147483648 2 -9223372036854775808 3", "%d %d %d %ld %d", 1, INT_MIN, 2,
              (long)INT64_MIN, 3);
}

TEST(null_string)
{
    const char *volatile null = NULL;
    CHECK_FMT("<(null)>", "<%s>", null);
}

/* Always terminated, never beyond its size, for every size. */
TEST(truncation)
{
    const char *whole = "goroutine -12345 of 0xabc ends";
    for (size_t size = 1; size <= strlen(whole) + 2; size++) {
        memset(buf, 'x', sizeof buf);
        size_t n = fmt(buf, size, "%s %d of %p %s", "goroutine", -12345, (void *)0xabc, "ends");
        size_t want = size - 1 < strlen(whole) ? size - 1 : strlen(whole);
        CHECK_EQ(n, want);
        CHECK_EQ(buf[n], '\0');
        CHECK(!memcmp(buf, whole, n));
        for (size_t i = n + 1; i < sizeof buf; i++)
            CHECK_EQ(buf[i], 'x');
    }
}

static size_t format_any(char *to, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    size_t n = fmt_v(to, size, format, ap);
    va_end(ap);
    return n;
}

TEST(unknown_conversion)
{
    CHECK_EQ(format_any(buf, sizeof buf, "a %y b"), 6);
    CHECK_STR(buf, "a %y b");
}

/* A format that ends in its middle must not be read beyond its end. */
TEST(format_ends_in_a_conversion)
{
    CHECK_EQ(format_any(buf, sizeof buf, "ab%\0cdef"), 3);
    CHECK_STR(buf, "ab%");
    format_any(buf, sizeof buf, "ab%l\0cdef");
    CHECK(!strstr(buf, "cdef"));
    CHECK(strlen(buf) <= 4);
}

/* --- writing -------------------------------------------------------------------------------------- */

static size_t read_all(int fd)
{
    size_t n = 0;
    ssize_t r;
    while ((r = read(fd, buf + n, sizeof buf - 1 - n)) > 0)
        n += (size_t)r;
    buf[n] = '\0';
    return n;
}

TEST(say_to_a_descriptor)
{
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    say_fd(fds[1], "one %d\n", 1);
    say_fd(fds[1], "%s%c", "two", '\n');
    close(fds[1]);
    read_all(fds[0]);
    CHECK_STR(buf, "one 1\ntwo\n");
    say_fd(-1, "nobody hears %d\n", 1); /* no loop, no crash */
}

/* "as many write(2)s as it takes": nothing is cut off. */
TEST(say_long)
{
    static char text[1001];
    int fds[2];
    memset(text, 'y', sizeof text - 1);
    CHECK_EQ(pipe(fds), 0);
    say_fd(fds[1], "<%s>\n", text);
    close(fds[1]);
    CHECK_EQ(read_all(fds[0]), 1003);
    CHECK_EQ(buf[0], '<');
    CHECK(!memcmp(buf + 1, text, 1000));
    CHECK_STR(buf + 1001, ">\n");
}

/* --- ending --------------------------------------------------------------------------------------- */

static void call_say(void *arg)
{
    (void)arg;
    say("to stderr: %s\n", "yes");
}

static void call_throw(void *arg)
{
    (void)arg;
    throw("module: %d is not %d", 1, 2);
}

static void call_fatal(void *arg)
{
    (void)arg;
    fatal("out of %s", "luck");
}

static void call_misuse(void *arg)
{
    (void)arg;
    misuse("sync: %s", "wrong");
}

static void callback(const char *message)
{
    say("callback: %s\n", message);
}

static void dump(int fd)
{
    say_fd(fd, "dump\n");
}

static void call_with_hooks(void *arg)
{
    (void)arg;
    fatal_callback = callback;
    fatal_dump = dump;
    fatal("the end");
}

static void dump_fails(int fd)
{
    (void)fd;
    throw("inside the dump");
}

static void call_twice(void *arg)
{
    (void)arg;
    fatal_dump = dump_fails;
    fatal("first");
}

static void call_long(void *arg)
{
    (void)arg;
    char text[400];
    memset(text, 'z', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    fatal("%s!", text);
}

TEST(endings)
{
    CHECK_EQ(test_in_child(call_say, NULL), 0);
    CHECK_STR(test_said, "to stderr: yes\n");
    int status = test_in_child(call_throw, NULL);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_STR(test_said, "fatal error: module: 1 is not 2\n");
    status = test_in_child(call_fatal, NULL);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 2);
    CHECK_STR(test_said, "fatal error: out of luck\n");
    status = test_in_child(call_misuse, NULL);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 2);
    CHECK_STR(test_said, "panic: sync: wrong\n");
    status = test_in_child(call_with_hooks, NULL);
    CHECK_EQ(WEXITSTATUS(status), 2);
    CHECK_STR(test_said, "fatal error: the end\ncallback: the end\ndump\n");
}

TEST(failure_in_the_report)
{
    int status = test_in_child(call_twice, NULL);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_STR(test_said,
              "fatal error: first\n\nfatal error: failed again while reporting a failure\n");
}

/* A message may have 511 characters; its line must end. */
TEST(long_message)
{
    int status = test_in_child(call_long, NULL);
    CHECK_EQ(WEXITSTATUS(status), 2);
    CHECK_EQ(strlen(test_said), strlen("fatal error: ") + 399 + strlen("!\n"));
    CHECK_EQ(test_said[strlen(test_said) - 1], '\n');
}

/* --- stderr is full -------------------------------------------------------------------------------- */

static int full[2];

static void fill_stderr(void)
{
    memset(buf, '.', sizeof buf);
    CHECK_EQ(pipe2(full, O_NONBLOCK), 0);
    while (write(full[1], buf, sizeof buf) > 0 || write(full[1], buf, 1) > 0) {
    }
    CHECK_EQ(fcntl(full[1], F_SETFL, 0), 0);
    CHECK_EQ(dup2(full[1], STDERR_FILENO), STDERR_FILENO);
}

static size_t drain(char *text, size_t size)
{
    size_t have = 0;
    for (ssize_t n; (n = read(full[0], text + have, size - 1 - have)) > 0;)
        have += (size_t)n;
    text[have] = '\0';
    return have;
}

/* Lines come in their order, later; those that find no room are counted. */
static void says_much(void *arg)
{
    static char text[1 << 17], want[4096];
    size_t n = 0;
    fill_stderr();
    for (int i = 0; i < 20; i++)
        say("line %d: ................................................................\n", i);
    CHECK(!say_can());
    say_rest();
    drain(text, sizeof text);
    CHECK(!strstr(text, "line"));
    say_rest();
    drain(text, sizeof text);
    for (int i = 0; i < 13; i++)
        n += fmt(want + n, sizeof want - n,
                 "line %d: ................................................................\n", i);
    fmt(want + n, sizeof want - n, "pirn: 7 lines are lost here\n");
    CHECK_STR(text, want);
    say("at once\n");
    drain(text, sizeof text);
    CHECK_STR(text, "at once\n");
    CHECK(arg == NULL);
}

TEST(says_later)
{
    CHECK_EQ(test_in_child(says_much, NULL), 0);
}

/* Nobody at the other end. */
static void says_to_nobody(void *arg)
{
    fill_stderr();
    signal(SIGPIPE, SIG_IGN);
    close(full[0]);
    say("not heard\n");
    say_rest();
    close(STDERR_FILENO);
    say("not heard\n");
    CHECK(arg == NULL);
}

TEST(says_to_nobody)
{
    CHECK_EQ(test_in_child(says_to_nobody, NULL), 0);
}
