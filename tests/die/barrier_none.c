/* SPDX-License-Identifier: MIT */
/*
 * expect-exit: 2
 * expect-first-line: panic: barrier: for fewer than one
 */
#include <pirn.h>

int main(void)
{
    pirn_barrier b;
    pirn_barrier_init(&b, 0);
    return 0;
}
