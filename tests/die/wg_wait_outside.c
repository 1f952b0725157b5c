/* SPDX-License-Identifier: MIT */
/*
 * A wait that need not wait is allowed without a runtime; one that would block is not.
 * expect-exit: 2
 * expect-first-line: panic: pirn_wg_wait would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_wg wg = {0};
    pirn_wg_wait(&wg);
    pirn_wg_add(&wg, 1);
    pirn_wg_wait(&wg);
    return 0;
}
