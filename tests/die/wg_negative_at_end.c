/* SPDX-License-Identifier: MIT */
/*
 * The done of pirn_wg_go itself is the one too many: its goroutine has ended, and can't recover it.
 * expect-exit: 2
 * expect-first-line: panic: sync: negative WaitGroup counter
 */
#include <pirn.h>

static void done(pirn_wg *wg)
{
    pirn_wg_done(wg);
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_wg_go(&wg, done, &wg);
    while (pirn_num_goroutines()) {
        pirn_yield();
    }
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
