/* SPDX-License-Identifier: MIT */
/*
 * A guarded stack of 64 KB: the 17th or so kilobyte of depth too many hits the guard, not the
 * neighbour.
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
