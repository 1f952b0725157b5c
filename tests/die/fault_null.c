/* SPDX-License-Identifier: MIT */
/*
 * A NULL pointer, with an offset.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at address 0x10: NULL, or near it\n\tpc=0x\w+ sp=0x\w+\n\n
 * expect-stderr-regex: ^goroutine \d+ \[running\] fails:\n\t(touch at .*fault_null\.c:\d+|\S*fault_null\+0x\w+)\n\t(fails at .*fault_null\.c:\d+|\S*fault_null\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include <pirn.h>
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
    char *volatile at = (char *)16;
    touch(at);
    __asm__ volatile(""); /* its frame is still there */
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
