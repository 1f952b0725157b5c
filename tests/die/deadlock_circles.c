/* SPDX-License-Identifier: MIT */
/*
 * Five circles, one after the other and the last three at once, while the program goes on: each is told once,
 * and within a second, on a machine that lets it run.
 * expect-exit: 0
 * expect-stderr-regex: \A(pirn: some goroutines wait for each other:\n\ndeadlock of mutexes:\n(\tgoroutine \d+ waits for mutex 0x[0-9a-f]+, which is held by goroutine \d+\n){2}(\ngoroutine \d+ \[mutex lock.*\] wants:\n(\t.*\n)+){2}\n){5}\Z
 * env: PIRN_DEBUG=deadlock=1
 * procs: 1,4
 * timeout: 60
 */
#include <pirn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct circle {
    pirn_mutex a, b;
    atomic_int have;
} circles[5];

static void wants(struct circle *c, int first)
{
    pirn_mutex_lock(first ? &c->a : &c->b);
    atomic_fetch_add(&c->have, 1);
    while (atomic_load(&c->have) < 2)
        pirn_yield();
    pirn_mutex_lock(first ? &c->b : &c->a);
}

static void make(struct circle *c)
{
    pirn_go(wants, c, 1);
    pirn_go(wants, c, 0);
}

/* How many stderr, a file, tells of. */
static int told(int fd)
{
    static char text[65536];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    int n = 0;
    text[got > 0 ? got : 0] = '\0';
    for (char *at = text; (at = strstr(at, "wait for each other:")); at++)
        n++;
    return n;
}

static pirn_ns until_told(int fd, int n)
{
    pirn_ns begin = pirn_now();
    while (told(fd) < n && pirn_now() - begin < 20 * PIRN_SEC)
        pirn_sleep(10 * PIRN_MS);
    return pirn_now() - begin;
}

static int start(void *arg)
{
    char buf[4096];
    int fd = memfd_create("stderr", 0), before = dup(STDERR_FILENO);
    (void)arg;
    if (fd < 0 || before < 0 || dup2(fd, STDERR_FILENO) < 0)
        return 3;
    pirn_ns best = PIRN_NEVER, took;
    for (int i = 0; i < 3; i++) {
        for (int k = i; k < (i < 2 ? i + 1 : 5); k++)
            make(&circles[k]);
        took = until_told(fd, i < 2 ? i + 1 : 5);
        best = took < best ? took : best;
    }
    pirn_sleep(600 * PIRN_MS); /* none is told again; and the last is written whole */
    lseek(fd, 0, SEEK_SET);
    for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
        if (write(before, buf, (size_t)n) != n)
            return 4;
    return best > PIRN_SEC ? 5 : 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
