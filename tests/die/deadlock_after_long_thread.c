/* SPDX-License-Identifier: MIT */
/*
 * A thread of the program's own ends after 3.6 s, just after a look of the detector: a deadlock is
 * reported within a few seconds after that too.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: ^goroutine 1 \[wait group wait, \d{4} ms\] main:$
 * timeout: 9
 */
#include "sleeper.h"

int main(void)
{
    struct timespec t = {.tv_sec = 3, .tv_nsec = 600 * 1000 * 1000};
    return pirn_run(wait_beside_sleeper, &t);
}
