/* SPDX-License-Identifier: MIT */
/*
 * A fault is no panic unless asked for.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at address 0x0: NULL, or near it\n
 * expect-stderr-regex: ^goroutine \d+ \[running\] fails:\n\t(touch at .*fault_try\.c:\d+|\S*fault_try\+0x\w+)\n\t(touch_it at .*fault_try\.c:\d+|\S*fault_try\+0x\w+)\n(\t.*\n)*\t(fails at .*fault_try\.c:\d+|\S*fault_try\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 * skip-in: ubsan the sanitizer finds it first
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

static void touch_it(void *p)
{
    touch(p);
    __asm__ volatile(""); /* its frame is still there */
}

static void fails(void)
{
    pirn_panic_free(pirn_try(touch_it, NULL));
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
