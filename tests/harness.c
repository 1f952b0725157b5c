/* SPDX-License-Identifier: MIT */
/* See harness.h. Messages are put together in a small buffer and leave in one write(2). */
#include "harness.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if PIRN_HAVE_VALGRIND
#include <valgrind/valgrind.h>
#endif

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

bool test_on_valgrind(void)
{
#if PIRN_HAVE_VALGRIND
    return RUNNING_ON_VALGRIND;
#else
    return false;
#endif
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

static struct test *find(const char *name)
{
    struct test *t = first;
    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    return t;
}

/* --- many times in one process -------------------------------------------------------------------- */

static void *nothing(void *arg)
{
    return arg;
}

static size_t threads(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Not by a function that a sanitizer watches: this is nobody's access. */
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static void
copy_words(volatile uint64_t *to, const volatile uint64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

/*
 * The program's static data is as at the start each time. What else a test leaves behind is not taken
 * away; if that is a thread, or it says so, the rest of the times are in a new process image. Leaks are not looked for:
 * what only static data knew is lost with it.
 */
static void run_many(struct test *t, int times, char **argv)
{
    extern char __data_start[], _end[]; /* by the linker */
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, nothing, NULL), 0);
    pthread_join(thread, NULL); /* a sanitizer makes one of its own with the first */
    uintptr_t begin = ((uintptr_t)__data_start + 7) & ~(uintptr_t)7;
    size_t words = ((uintptr_t)_end - begin) / 8, alone = threads();
    uint64_t *start =
        mmap(NULL, words * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t me = getpid();
    CHECK(start != MAP_FAILED);
    copy_words(start, (void *)begin, words);
    for (int i = 0; i < times; i++) {
        t->fn();
        if (getpid() != me)
            return; /* a child whose main is to return */
        for (int k = 0; k < 100 && threads() > alone; k++)
            usleep(1000); /* one that was joined may be seen for a moment */
        if (i + 1 < times && (t->attr.once || threads() > alone)) {
            char left[16];
            snprintf(left, sizeof left, "%d", times - i - 1);
            execv("/proc/self/exe", (char *[]){argv[0], argv[1], left, NULL});
            FAIL("exec");
        }
        copy_words((void *)begin, start, words);
    }
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list();
        return 0;
    }
    if (argc == 2 || argc == 3) {
        struct test *t = find(argv[1]);
        if (!t) {
            fprintf(stderr, "%s: no test named %s\n", argv[0], argv[1]);
            return 2;
        }
        /* Lines come out in order with stderr's; unbuffered would need a big stack frame. */
        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc == 3)
            run_many(t, atoi(argv[2]), argv);
        else
            t->fn();
        return 0;
    }
    fprintf(stderr, "usage: %s --list | NAME [TIMES]\n", argv[0]);
    return 2;
}

extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

long test_cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec
           + u.ru_stime.tv_usec;
}

size_t test_allocated(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return __sanitizer_get_current_allocated_bytes();
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

char test_said[65536];

/* It shows the program its own name, in the usual place only. */
bool test_emulated(void)
{
    char mine[4096] = "", process[4096] = "";
    return readlink("/proc/self/exe", mine, sizeof mine - 1) > 0
           && readlink("/proc/thread-self/exe", process, sizeof process - 1) > 0
           && strcmp(mine, process) != 0;
}

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
