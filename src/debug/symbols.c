/* SPDX-License-Identifier: MIT */
/*
 * Names for addresses, from the program pirn-symbols, which is started for a report and asked.
 *
 * Whoever reports may have no memory left, or be in a signal handler, or have stopped the world with any
 * lock in the hands of somebody who stands still. So nothing here allocates or takes a lock, and the debug
 * information is read by another process. It is made like a vfork, on a stack of its own, without a signal
 * at its end, and with all signals blocked, for a handler would run in the memory of this one; its one descriptor is a socket, on which no write can raise SIGPIPE. If anything fails, or it
 * does not answer in time, the report goes on without names.
 *
 * One report at a time has it (busy); another one meanwhile has no names.
 *
 * PIRN_SYMBOLS=path names the program, PIRN_SYMBOLS=off leaves it alone; else it is where it was installed.
 * A set-uid program starts nothing.
 */
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <symbols_path.h> /* made by the build */
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "debug/backtrace.h"
#include "debug/unwind.h"

#define FIRST_ANSWER ((int64_t)20 * 1000 * 1000 * 1000) /* it reads the tables of a large program */
#define CACHED 256u

static char program_path[256] = PIRN_SYMBOLS_PATH;

static struct {
    at_u32 busy;
    uint32_t depth; /* of begin and end, by who has it */
    int tid;
    int fd; /* -1: there is none */
    pid_t pid;
    char answer[4096];
    char stack[16384] __attribute__((aligned(16)));
} symbols = {.fd = -1};

void symbols_set_path(void)
{
    const char *path = secure_getenv("PIRN_SYMBOLS");
    if (path) {
        fmt(program_path, sizeof program_path, "%s", strcmp(path, "off") ? path : "");
    }
}

/* --- the program --------------------------------------------------------------------------------------- */

/* In the memory of the parent, which waits: nothing but system calls. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void child(void *arg)
{
    static char *const argv[] = {program_path, NULL}, *const env[] = {NULL};
    int fd = *(int *)arg;
    syscall(SYS_dup3, fd, STDIN_FILENO, 0);
    syscall(SYS_dup3, fd, STDOUT_FILENO, 0);
    syscall(SYS_close_range, STDERR_FILENO, ~0u, 0);
    syscall(SYS_execve, program_path, argv, env);
    syscall(SYS_exit_group, 127);
}

/* A tool that follows processes would follow this one. */
static bool allowed(void)
{
    return program_path[0] && tool_knows_new_calls() && !getauxval(AT_SECURE)
           && access(program_path, X_OK) == 0;
}

static void start(void)
{
    int pair[2];
    if (!allowed() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        return;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    symbols.pid = (pid_t)arch_clone(CLONE_VM | CLONE_VFORK, symbols.stack + sizeof symbols.stack,
                                    child, &pair[1]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(pair[1]);
    if (symbols.pid < 0) {
        close(pair[0]);
        return;
    }
    symbols.fd = pair[0];
}

static void stop(void)
{
    int status;
    if (symbols.fd < 0) {
        return;
    }
    close(symbols.fd);
    symbols.fd = -1;
    kill(symbols.pid, SIGKILL); /* it has nothing to lose */
    waitpid(symbols.pid, &status, __WALL);
}

bool symbols_begin(void)
{
    uint32_t none = 0;
    int me = gettid();
    if (at_load(&symbols.busy, RELAXED) && symbols.tid == me) {
        symbols.depth++;
        return true;
    }
    if (!at_cas(&symbols.busy, &none, 1, ACQUIRE, RELAXED)) {
        return false;
    }
    symbols.tid = me;
    symbols.depth = 1;
    start();
    return true;
}

void symbols_end(void)
{
    if (--symbols.depth == 0) {
        stop();
        symbols.tid = 0;
        at_store(&symbols.busy, 0, RELEASE);
    }
}

/* --- questions ----------------------------------------------------------------------------------------- */

static bool tell(const char *text, size_t n)
{
    while (n) {
        ssize_t sent = send(symbols.fd, text, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        text += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool readable(int64_t until)
{
    for (;;) {
        struct pollfd p = {.fd = symbols.fd, .events = POLLIN};
        int64_t ms = (until - now_ns()) / 1000000;
        int n = ms > 0 ? poll(&p, 1, (int)ms) : 0;
        if (n >= 0 || errno != EINTR) {
            return n == 1;
        }
    }
}

/* Up to the empty line. */
static bool hear(void)
{
    size_t n = 0;
    for (int64_t until = now_ns() + FIRST_ANSWER; readable(until);) {
        ssize_t got = recv(symbols.fd, symbols.answer + n, sizeof symbols.answer - 1 - n, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        n += (size_t)got;
        symbols.answer[n] = '\0';
        if (symbols.answer[n - 1] == '\n' && (n == 1 || symbols.answer[n - 2] == '\n')) {
            return true;
        }
    }
    return false;
}

static int split(struct symbol *out, int max)
{
    int n = 0;
    for (char *at = symbols.answer, *end; n < max && *at && *at != '\n'; at = end + 1) {
        char *tab = strchr(at, '\t');
        end = strchr(at, '\n');
        if (!end || !tab || tab > end) {
            break;
        }
        *tab = *end = '\0';
        out[n++] = (struct symbol){at, tab + 1};
    }
    return n;
}

int symbols_of(const void *pc, struct symbol *out, int max)
{
    char question[512];
    const char *path;
    uintptr_t offset;
    if (at_load(&symbols.busy, RELAXED) == 0 || symbols.tid != gettid() || symbols.fd < 0
        || !symbols_module(pc, &path, &offset)) {
        return 0;
    }
    size_t n = fmt(question, sizeof question, "%s+0x%lx\n", path, (unsigned long)offset);
    if (n == sizeof question - 1) {
        return 0; /* a path that is too long */
    }
    if (!tell(question, n) || !hear()) {
        stop();
        return 0;
    }
    return split(out, max);
}

bool symbols_module(const void *pc, const char **path, uintptr_t *offset)
{
    static char self[256]; /* the program; written once, always with the same */
    struct module m;
    uintptr_t at = (uintptr_t)pc - 1;
    if (!module_of(at, &m)) {
        return false;
    }
    *path = m.name;
    *offset = at - m.base;
    if (!*m.name) {
        if (!self[0]) {
            char buf[sizeof self];
            ssize_t n = readlink("/proc/self/exe", buf, sizeof buf - 1);
            memcpy(self, buf, n > 0 ? (size_t)n : 0);
        }
        *path = self[0] ? self : "program";
    }
    return true;
}
