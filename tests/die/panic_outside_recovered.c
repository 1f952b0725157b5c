/* SPDX-License-Identifier: MIT */
/*
 * Recovered on a thread, with nowhere to return to.
 * expect-exit: 2
 * expect-first-line: fatal error: a panic was recovered outside goroutines, and there is no pirn_try to return to: lost
 */
#include <pirn.h>

static void recovers(void)
{
    pirn_recover();
}

int main(void)
{
    pirn_defer(recovers);
    pirn_panic("lost");
}
