/* SPDX-License-Identifier: MIT */
/*
 * What need not wait is allowed without a runtime; what would block is not.
 * expect-exit: 2
 * expect-first-line: panic: pirn_sem_acquire would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_sem s = PIRN_SEM_INIT(1);
    pirn_sem_acquire(&s, 1);
    pirn_sem_acquire(&s, 1);
    return 0;
}
