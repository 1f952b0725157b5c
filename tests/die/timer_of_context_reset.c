/* SPDX-License-Identifier: MIT */
/*
 * One that waits for a context, and not for a time, can be stopped and freed only.
 * expect-exit: 2
 * expect-first-line: panic: timer: reset of one that waits for a context
 */
#include <pirn.h>

static void nothing(void *arg)
{
    (void)arg;
}

static int start(void *arg)
{
    (void)arg;
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_timer *t = pirn_ctx_after_func(ctx, nothing, NULL);
    if (!pirn_timer_stop(t) || pirn_timer_stop_wait(t)) {
        return 1;
    }
    pirn_timer_reset(t, 1);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
