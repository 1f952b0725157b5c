/* SPDX-License-Identifier: MIT */
/*
 * A waits for B and B for A, while others go on: under PIRN_DEBUG=deadlock=1 it is reported, with both
 * stacks, within a second, and once.
 * expect-exit: 0
 * expect-first-line: pirn: some goroutines wait for each other:
 * expect-stderr-regex: ^deadlock of mutexes:\n\tgoroutine (\d+) waits for mutex 0x[0-9a-f]+, which is held by goroutine (\d+)\n\tgoroutine \2 waits for mutex 0x[0-9a-f]+, which is held by goroutine \1$
 * expect-stderr-regex: ^goroutine (\d+) \[mutex lock(, .*)?\] first:\n\tthe mutex is held by goroutine \d+\n(\t.*\n)+\tcreated by goroutine 1 at
 * expect-stderr-regex: ^goroutine (\d+) \[mutex lock(, .*)?\] second:\n\tthe mutex is held by goroutine \d+\n(\t.*\n)+\tcreated by goroutine 1 at
 * expect-stderr-regex: \A(?!(.|\n)*wait for each other(.|\n)*wait for each other)
 * expect-no-stderr: goroutine 1 [
 * env: PIRN_DEBUG=deadlock=1
 * procs: 1,4
 * timeout: 30
 */
#include "circle.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns when stderr, a file, has something in it, and a while after. */
static int start(void *arg)
{
    char buf[4096];
    int fd = memfd_create("stderr", 0), before = dup(STDERR_FILENO);
    (void)arg;
    if (fd < 0 || before < 0 || dup2(fd, STDERR_FILENO) < 0)
        return 3;
    pirn_go(first);
    pirn_go(second);
    pirn_ns begin = pirn_now(), took;
    while (lseek(fd, 0, SEEK_END) == 0 && pirn_now() - begin < 20 * PIRN_SEC)
        pirn_sleep(10 * PIRN_MS);
    took = pirn_now() - begin;
    pirn_sleep(PIRN_SEC); /* it is not told again */
    lseek(fd, 0, SEEK_SET);
    for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
        if (write(before, buf, (size_t)n) != n)
            return 4;
    return took > 10 * PIRN_SEC ? 5 : 0; /* 1 s, on a machine with nothing else to do */
}

int main(void)
{
    return pirn_run(start, NULL);
}
