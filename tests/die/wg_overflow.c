/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: sync: WaitGroup counter overflow
 */
#include <limits.h>
#include <pirn.h>

int main(void)
{
    pirn_wg wg = {0};
    pirn_wg_add(&wg, INT_MAX);
    pirn_wg_add(&wg, 1);
    return 0;
}
