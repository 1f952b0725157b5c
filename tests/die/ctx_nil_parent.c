/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: cannot create context from nil parent
 * procs: 1,4
 */
#include <pirn.h>

static int start(void *arg)
{
    pirn_ctx_release(pirn_ctx_with_cancel(arg));
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
