/* SPDX-License-Identifier: MIT */
/*
 * What need not wait is allowed without a runtime; what would block is not.
 * expect-exit: 2
 * expect-first-line: panic: pirn_barrier_wait would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_barrier b;
    pirn_barrier_init(&b, 1);
    if (!pirn_barrier_wait(&b)) {
        return 1;
    }
    pirn_barrier_init(&b, 2);
    (void)pirn_barrier_wait(&b);
    return 0;
}
