/* SPDX-License-Identifier: MIT */
/*
 * Main ends itself, the others go on and end; then nothing is left.
 * expect-exit: 2
 * expect-first-line: fatal error: no goroutines (main called pirn_exit) - deadlock!
 * expect-stdout: the others went on
 * procs: 1,2,4,16
 * timeout: 10
 */
#include <pirn.h>
#include <unistd.h>

static void other(void)
{
    for (int i = 0; i < 1000; i++) {
        pirn_yield();
    }
    ssize_t n = write(1, "the others went on\n", 19);
    (void)n;
}

static int start(void *arg)
{
    (void)arg;
    pirn_go(other);
    pirn_exit();
}

int main(void)
{
    return pirn_run(start, NULL);
}
