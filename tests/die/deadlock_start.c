/* SPDX-License-Identifier: MIT */
/*
 * A runtime in the background reports a deadlock when it was asked to: the last thread that could
 * do anything waits in pirn, and nobody is left to wake it.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * procs: 1,4
 * timeout: 5
 */
#include <pirn.h>

static pirn_wg never;

static void waiter(void)
{
    pirn_wg_wait(&never);
}

int main(void)
{
    if (pirn_start(&(pirn_config){.flags = PIRN_F_DEADLOCK})) {
        return 1;
    }
    pirn_wg_add(&never, 1);
    pirn_go(waiter);
    pirn_wg_wait(&never);
    return 0;
}
