/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: context: signal 9 can't be caught
 */
#include <signal.h>

#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGTERM, SIGKILL}, 2);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
