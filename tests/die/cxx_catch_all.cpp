/* SPDX-License-Identifier: MIT */
/*
 * A catch (...) that keeps a panic to itself.
 * expect-exit: 2
 * expect-first-line: fatal error: a panic was caught by catch (...), and not rethrown: kept
 */
#include <pirn.h>

static void keeps(void *)
{
    try {
        pirn_panic("kept");
    } catch (...) {
    }
}

static int start(void *)
{
    pirn_try(keeps, nullptr);
    return 0;
}

int main()
{
    return pirn_run(start, nullptr);
}
