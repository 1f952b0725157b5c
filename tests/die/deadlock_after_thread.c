/* SPDX-License-Identifier: MIT */
/*
 * While a thread of the program's own lives it might wake somebody; 500 ms later it has ended, and
 * the deadlock is reported, with the time that main has waited.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[wait group wait, \d{3,} ms\] main:$
 * procs: 1,4
 * timeout: 5
 */
#include "sleeper.h"

int main(void)
{
    return pirn_run(wait_beside_sleeper, &(struct timespec){.tv_nsec = 500 * 1000 * 1000});
}
