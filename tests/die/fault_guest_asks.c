/* SPDX-License-Identifier: MIT */
/*
 * PIRN_F_FAULTS under pirn_start.
 * expect-signal: SIGSEGV
 * expect-first-line: fatal error: SIGSEGV at address 0x0: NULL, or near it
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 * skip-in: ubsan the sanitizer finds it first
 */
#include <pirn.h>

static void fails(void *p)
{
    *(volatile int *)p = 1;
}

int main(void)
{
    pirn_wg wg = {0};
    if (pirn_start(&(pirn_config){.flags = PIRN_F_FAULTS})) {
        return 1;
    }
    pirn_wg_go(&wg, fails, NULL);
    pirn_wg_wait(&wg);
    return 0;
}
