/* SPDX-License-Identifier: MIT */
/*
 * A goroutine that has no context of its own would cancel everything.
 * expect-exit: 2
 * expect-first-line: panic: context: the background can't be cancelled
 */
#include <pirn.h>

static int start(void *arg)
{
    (void)arg;
    pirn_ctx_cancel(pirn_ctx_current(), 0);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
