/* SPDX-License-Identifier: MIT */
/*
 * PIRN_DEBUG=leaks=1 has nothing to say.
 * expect-exit: 0
 * expect-no-stderr: pirn
 * env: PIRN_DEBUG=leaks=1
 * procs: 1,4
 */
#include <pirn.h>

static void ends(void)
{
    pirn_yield();
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 100; i++)
        pirn_wg_go(&wg, ends);
    pirn_wg_wait(&wg);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
