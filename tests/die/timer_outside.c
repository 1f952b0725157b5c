/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: a timer is set, and no runtime runs
 */
#include <pirn.h>

int main(void)
{
    pirn_timer_new(1);
    return 0;
}
