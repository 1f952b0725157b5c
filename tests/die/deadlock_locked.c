/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that are locked to their threads wait for ever, main among them.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[wait group wait.*\] main:$
 * expect-stderr-regex: ^goroutine \d+ \[chan receive \(NULL channel\).*\] waits:$
 * procs: 1,2,4,16
 * timeout: 10
 */
#include <pirn.h>

static void waits(void)
{
    pirn_chan(int) none = NULL;
    pirn_lock_thread();
    pirn_yield();
    (void)pirn_chan_get(none);
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_lock_thread();
    for (int i = 0; i < 5; i++) {
        pirn_wg_go(&wg, waits);
    }
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
