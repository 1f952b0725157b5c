/* SPDX-License-Identifier: MIT */
/* See harness.h. Messages are put together in a small buffer and leave in one write(2). */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct message {
    size_t len;
    char text[480];
};

static struct test *first;
static struct test **last = &first;

void test_register(struct test *t)
{
    *last = t;
    last = &t->next;
}

static void add(struct message *m, const char *s)
{
    if (!s)
        s = "(null)";
    while (*s && m->len < sizeof m->text - 1)
        m->text[m->len++] = *s++;
}

static void add_int(struct message *m, long long v)
{
    char digits[24];
    size_t i = sizeof digits;
    unsigned long long u = v < 0 ? 0ULL - (unsigned long long)v : (unsigned long long)v;

    digits[--i] = '\0';
    do {
        digits[--i] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (v < 0)
        digits[--i] = '-';
    add(m, digits + i);
}

static void add_place(struct message *m, const char *file, int line, const char *what)
{
    m->len = 0;
    add(m, file);
    add(m, ":");
    add_int(m, line);
    add(m, ": failed: ");
    add(m, what);
}

/* stdio is not flushed: another thread may hold its lock. */
static _Noreturn void finish(struct message *m, int code)
{
    ssize_t n;

    m->text[m->len++] = '\n';
    n = write(STDERR_FILENO, m->text, m->len);
    (void)n;
    _exit(code);
}

__attribute__((noinline)) void test_fail(const char *file, int line, const char *what)
{
    struct message m;

    add_place(&m, file, line, what);
    finish(&m, 1);
}

__attribute__((noinline)) void test_fail_op(const char *file, int line, const char *what,
                                            long long a, long long b)
{
    struct message m;

    add_place(&m, file, line, what);
    add(&m, " (");
    add_int(&m, a);
    add(&m, " and ");
    add_int(&m, b);
    add(&m, ")");
    finish(&m, 1);
}

__attribute__((noinline)) void test_fail_str(const char *file, int line, const char *what,
                                             const char *a, const char *b)
{
    struct message m;

    add_place(&m, file, line, what);
    add(&m, "\n  left:  ");
    add(&m, a);
    add(&m, "\n  right: ");
    add(&m, b);
    finish(&m, 1);
}

bool test_str_eq(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

void test_skip(const char *why)
{
    struct message m = {.len = 0};

    add(&m, "skipped: ");
    add(&m, why);
    finish(&m, 77);
}

static void list(void)
{
    for (struct test *t = first; t; t = t->next) {
        printf("%s", t->name);
        if (t->attr.timeout)
            printf("\ttimeout=%d", t->attr.timeout);
        if (t->attr.procs)
            printf("\tprocs=%s", t->attr.procs);
        if (t->attr.env)
            printf("\tenv=%s", t->attr.env);
        if (t->attr.slow)
            printf("\tslow=1");
        if (t->attr.alone)
            printf("\talone=1");
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list();
        return 0;
    }
    if (argc == 2) {
        /* Lines come out in order with stderr's; unbuffered would need a big stack frame. */
        setvbuf(stdout, NULL, _IOLBF, 0);
        for (struct test *t = first; t; t = t->next) {
            if (strcmp(t->name, argv[1]) == 0) {
                t->fn();
                return 0;
            }
        }
        fprintf(stderr, "%s: no test named %s\n", argv[0], argv[1]);
        return 2;
    }
    fprintf(stderr, "usage: %s --list | NAME\n", argv[0]);
    return 2;
}

char test_said[65536];

/* An emulator adds a line of its own when a program dies of a signal. */
static void drop_qemu_line(char *said)
{
    char *line = strstr(said, "qemu: uncaught target signal");
    if (line) {
        char *end = strchr(line, '\n');
        memmove(line, end ? end + 1 : line + strlen(line), end ? strlen(end + 1) + 1 : 1);
    }
}

int test_in_child(void (*fn)(void *), void *arg)
{
    int fds[2], status;
    size_t n = 0;
    ssize_t r;
    CHECK_EQ(pipe(fds), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        dup2(fds[1], STDERR_FILENO);
        fn(arg);
        _exit(0);
    }
    close(fds[1]);
    while ((r = read(fds[0], test_said + n, sizeof test_said - 1 - n)) > 0)
        n += (size_t)r;
    test_said[n] = '\0';
    drop_qemu_line(test_said);
    close(fds[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}
