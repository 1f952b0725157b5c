/* SPDX-License-Identifier: MIT */
/*
 * The same where guards are made by mprotect: the guard is hit, not the neighbour.
 * env: PIRN_DEBUG=guard=mprotect
 * expect-signal: SIGSEGV
 * expect-stdout: deep enough
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include "overflow.h"

int main(void)
{
    return pirn_run(overflow_among_neighbours, NULL);
}
