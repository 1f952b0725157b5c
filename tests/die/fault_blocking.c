/* SPDX-License-Identifier: MIT */
/*
 * The same between pirn_blocking_begin and _end.
 * expect-signal: SIGSEGV
 * expect-first-line: fatal error: SIGSEGV at address 0x0: NULL, or near it
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 * skip-in: ubsan the sanitizer finds it first
 */
#include <pirn.h>

static void blocks(void *p)
{
    pirn_blocking_begin();
    *(volatile int *)p = 1;
}

static int start(void *arg)
{
    pirn_panic_free(pirn_try(blocks, arg));
    return 0;
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.panic_on_fault = 1}, start, NULL);
}
