/* SPDX-License-Identifier: MIT */
/*
 * Rule R8: a fault inside pirn, where there may be locks, is no panic, whatever was asked for.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at address 0x\w+, inside pirn\n
 * expect-stderr-regex: ^goroutine 1 \[running\] main:\n(\t.*\n)*\t(pirn_chanv_send at .*chan\.c:\d+|\S+\+0x\w+)\n
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include <pirn.h>
#include <sys/mman.h>

static void sends(void *c)
{
    const void *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pirn_chanv_send(c, bad);
}

static int start(void *arg)
{
    (void)arg;
    pirn_panic_free(pirn_try(sends, pirn_chanv_make(64, 1)));
    return 0;
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.panic_on_fault = 1}, start, NULL);
}
