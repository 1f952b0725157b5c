/* SPDX-License-Identifier: MIT */
/*
 * Number 84: pirn_exit in a deferred call drops the panic of goroutine 1; then nothing is left.
 * expect-exit: 2
 * expect-first-line: fatal error: no goroutines (main called pirn_exit) - deadlock!
 * expect-no-stderr: dropped
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_defer(pirn_exit);
    pirn_panic("dropped");
}

int main(void)
{
    return pirn_run(start, NULL);
}
