/* SPDX-License-Identifier: MIT */
/*
 * A sleep that ends is no deadlock, nor is a timer that is still to come; one that never ends is.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[sleep.*\] main:\n(\t.*\n)+\tstarted by pirn_run$
 * expect-stdout: slept, fired
 * procs: 1,2,4,16
 * timeout: 10
 */
#include <pirn.h>
#include <stdio.h>

static int start(void *arg)
{
    (void)arg;
    pirn_sleep(20 * PIRN_MS);
    printf("slept, ");
    pirn_timer *t = pirn_timer_new(20 * PIRN_MS);
    pirn_chan_get(pirn_timer_chan(t));
    pirn_timer_reset(t, PIRN_SEC);
    pirn_timer_stop(t); /* not pending: it keeps nobody from seeing the deadlock */
    printf("fired\n");
    fflush(stdout);
    pirn_sleep(PIRN_NEVER);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
