/* SPDX-License-Identifier: MIT */
/*
 * The guard of its own stack, by a stray pointer: no overflow.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at address 0x\w+: the guard of a goroutine's stack\n
 * expect-stderr-regex: ^goroutine \d+ \[running\] fails:\n\t(touch at .*fault_guard\.c:\d+|\S*fault_guard\+0x\w+)\n\t(fails at .*fault_guard\.c:\d+|\S*fault_guard\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at
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
    char here; /* in the first page of a slot of 256 KB, the last 64 KB of which are guarded */
    uintptr_t top = ((uintptr_t)&here + 4095) & ~(uintptr_t)4095;
    touch((char *)(top - (256 << 10) + 4096));
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
