/* SPDX-License-Identifier: MIT */
/*
 * A context needs no runtime, but one that signals cancel needs the runtime's thread.
 * expect-exit: 2
 * expect-first-line: panic: pirn_ctx_with_signals, and no runtime runs
 */
#include <pirn.h>
#include <signal.h>

int main(void)
{
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx_with_signals(ctx, (int[]){SIGINT}, 1);
    return 0;
}
