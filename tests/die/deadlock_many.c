/* SPDX-License-Identifier: MIT */
/*
 * Hundreds of goroutines that do the same are one entry.
 *
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr: goroutine 1 [wait group wait
 * expect-stderr-regex: ^goroutine \d+ \[chan receive.*\] receive:\n\tand 249 more: \d+, \d+, \d+, \d+, \d+, \d+, \d+ \.\.\.\n(\t.*\n)+\tcreated by goroutine 1 at .*deadlock_many\.c:\d+$
 * expect-stderr-regex: ^goroutine \d+ \[mutex lock.*\] lock:\n\tand 49 more: \d+, .* \.\.\.\n\tthe mutex is held by goroutine 1\n(\t.*\n)+\tcreated by goroutine 1 at .*deadlock_many\.c:\d+$
 * procs: 1,4
 */
#include <pirn.h>

static pirn_mutex mutex;

static void receive(pirn_chan(int) c)
{
    pirn_chan_recv(c, NULL);
}

static void lock(void)
{
    pirn_mutex_lock(&mutex);
}

static int run(void *arg)
{
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 0);
    pirn_mutex_lock(&mutex);
    for (int i = 0; i < 250; i++)
        pirn_wg_go(&wg, receive, c);
    for (int i = 0; i < 50; i++)
        pirn_wg_go(&wg, lock);
    pirn_wg_wait(&wg);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(run, NULL);
}
