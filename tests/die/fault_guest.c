/* SPDX-License-Identifier: MIT */
/*
 * Under pirn_start there are no handlers, unless asked for.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \A\Z
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
    if (pirn_start(NULL)) {
        return 1;
    }
    pirn_wg_go(&wg, fails, NULL);
    pirn_wg_wait(&wg);
    return 0;
}
