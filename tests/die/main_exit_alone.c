/* SPDX-License-Identifier: MIT */
/*
 * Main ends itself and nothing else was ever started.
 * expect-exit: 2
 * expect-first-line: fatal error: no goroutines (main called pirn_exit) - deadlock!
 * procs: 1,4
 * timeout: 10
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_exit();
}

int main(void)
{
    return pirn_run(start, NULL);
}
