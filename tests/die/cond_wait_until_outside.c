/* SPDX-License-Identifier: MIT */
/*
 * A wait with a deadline, and no runtime that could end it before. One that is too late already is
 * allowed, and leaves the mutex locked.
 * expect-exit: 2
 * expect-first-line: panic: pirn_cond_wait_until would block, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_mutex m = {0};
    pirn_cond c = {0};
    pirn_mutex_lock(&m);
    if (pirn_cond_wait_until(&c, &m, 0) != -ETIMEDOUT || pirn_mutex_try_lock(&m)) {
        return 1;
    }
    return pirn_cond_wait_until(&c, &m, pirn_deadline(3600 * PIRN_SEC));
}
