/* SPDX-License-Identifier: MIT */
/*
 * More goroutines than can be read one by one: the rest is counted, by what they do.
 *
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr: goroutine 1 [wait group wait
 * expect-stderr: goroutine 100 [chan receive
 * expect-stderr: ... and 201 more goroutines:
 * expect-stderr-regex: \n151 \[chan receive\] receive, such as goroutine \d+:\n\tcreated by goroutine 1 at
 * expect-stderr-regex: \n50 \[mutex lock\] lock, such as goroutine \d+:\n\tcreated by goroutine 1 at
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
