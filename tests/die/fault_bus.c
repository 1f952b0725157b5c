/* SPDX-License-Identifier: MIT */
/*
 * Behind the end of a file.
 * expect-signal: SIGBUS
 * expect-stderr-regex: \Afatal error: SIGBUS at address 0x\w+: behind the end of a file, or bad memory\n
 * expect-stderr-regex: ^goroutine \d+ \[running\] fails:\n\t(touch at .*fault_bus\.c:\d+|\S*fault_bus\+0x\w+)\n\t(fails at .*fault_bus\.c:\d+|\S*fault_bus\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at
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
    FILE *f = tmpfile();
    touch(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0));
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
