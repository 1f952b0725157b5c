/* SPDX-License-Identifier: MIT */
/*
 * Rule R8: between pirn_blocking_begin and _end there is no way out.
 * expect-exit: 2
 * expect-first-line: panic: while it blocks
 */
#include <pirn.h>

static void blocks(void *arg)
{
    (void)arg;
    pirn_blocking_begin();
    pirn_panic("while it blocks");
}

static int start(void *arg)
{
    (void)arg;
    pirn_panic_free(pirn_try(blocks, NULL));
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
