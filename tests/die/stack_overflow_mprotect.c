/* SPDX-License-Identifier: MIT */
/*
 * The same where guards are made by mprotect: the guard is hit, not the neighbour.
 * env: PIRN_DEBUG=guard=mprotect
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: stack overflow: goroutine (\d+) outgrew its stack of 65536 bytes; raise \.stack_size\n\tgoroutine \1: sp=0x\w+ stack=\[0x\w+, 0x\w+\], 49152 bytes of it usable\n\t\.stack_size of pirn_attr
 * expect-stderr-regex: ^goroutine (\d+) \[running\]:\n(\t(__)?memset.*\n|\t\S*libc\S*\+0x\w+\n)*(\t(deep at .*overflow\.h:\d+|\S*stack_overflow_mprotect\+0x\w+)\n)+\t\.\.\. the same, \d+ times more\n(\t(deep at .*overflow\.h:\d+|\S*stack_overflow_mprotect\+0x\w+)\n)*\t(overflow at .*overflow\.h:\d+|\S*stack_overflow_mprotect\+0x\w+)\n
 * expect-stdout: deep enough
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include "overflow.h"

int main(void)
{
    return pirn_run(overflow_among_neighbours, NULL);
}
