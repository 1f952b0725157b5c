/* SPDX-License-Identifier: MIT */
/*
 * A division by zero.
 * expect-signal: SIGFPE
 * expect-stderr-regex: \Afatal error: SIGFPE at address 0x\w+: integer divide by zero\n
 * expect-stderr-regex: ^goroutine \d+ \[running\] fails:\n\t(fails at .*fault_divide\.c:\d+|\S*fault_divide\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at
 * skip-in: aarch64 a division by zero does not trap
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 * skip-in: ubsan the sanitizer finds it first
 */
#include <pirn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static __attribute__((noinline)) void touch(volatile char *p)
{
    *p = 1;
}

static void fails(void)
{
#if defined(__x86_64__)
    volatile int zero = 0;
    volatile int n = 7 / zero;
    (void)n;
#endif
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    (void)touch;
    pirn_wg_go(&wg, fails);
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
