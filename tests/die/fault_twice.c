/* SPDX-License-Identifier: MIT */
/*
 * Many faults at once: one report.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at address 0x0: NULL, or near it\n\tpc=\w+ sp=\w+\n\ngoroutine \d+ \[running\] fails:\n(?!(.*\n)*fatal)
 * procs: 2,4
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 * skip-in: ubsan the sanitizer finds it first
 */
#include <pirn.h>

static void fails(volatile int *p)
{
    *p = 1;
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 20; i++) {
        pirn_wg_go(&wg, fails, arg);
    }
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
