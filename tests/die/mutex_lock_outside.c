/* SPDX-License-Identifier: MIT */
/*
 * What need not wait is allowed without a runtime; what would block is not.
 * expect-exit: 2
 * expect-first-line: panic: pirn_mutex_lock would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_mutex m = {0};
    pirn_mutex_lock(&m);
    pirn_mutex_lock(&m);
    return 0;
}
