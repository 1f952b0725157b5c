/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: pirn_exit outside a goroutine
 */
#include <pirn.h>

int main(void)
{
    pirn_exit();
}
