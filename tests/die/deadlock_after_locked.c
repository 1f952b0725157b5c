/* SPDX-License-Identifier: MIT */
/*
 * A thread that has ended with its goroutine is not waited for.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * procs: 1,2,4,16
 * timeout: 10
 */
#include <pirn.h>

static void ends_locked(void)
{
    pirn_lock_thread();
    pirn_yield();
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    for (int i = 0; i < 10; i++) {
        pirn_wg_go(&wg, ends_locked);
    }
    pirn_wg_wait(&wg);
    pirn_select();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
