/* SPDX-License-Identifier: MIT */
/*
 * Where nothing is mapped.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at address 0x\w+: nothing there\n
 * expect-stderr-regex: ^goroutine \d+ \[running\] fails:\n\t(touch at .*fault_unmapped\.c:\d+|\S*fault_unmapped\+0x\w+)\n\t(fails at .*fault_unmapped\.c:\d+|\S*fault_unmapped\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at
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
    char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 4096);
    touch(p);
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
