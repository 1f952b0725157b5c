/* SPDX-License-Identifier: MIT */
/*
 * Main ends itself while it is locked to the thread of pirn_run, which does not end; the others go on.
 * expect-exit: 2
 * expect-first-line: fatal error: no goroutines (main called pirn_exit) - deadlock!
 * expect-stdout: the others went on
 * procs: 1,2,4,16
 * timeout: 10
 */
#include <unistd.h>

#include <pirn.h>

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
    pirn_lock_thread();
    pirn_go(other);
    pirn_exit();
}

int main(void)
{
    return pirn_run(start, NULL);
}
