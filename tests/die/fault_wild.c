/* SPDX-License-Identifier: MIT */
/*
 * An address that no process can have: the kernel does not say which.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at an address that can't be one: a wild pointer, or a frame that was overwritten\n\tpc=0x\w+ sp=0x\w+\n\ngoroutine \d+ \[running\] fails:\n\t(fails at .*fault_wild\.c:\d+|\S*fault_wild\+0x\w+)\n
 * skip-in: aarch64 the kernel says which
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include <pirn.h>

static void fails(void)
{
    volatile int *volatile p = (volatile int *)0x123456789abcdef0;
    *p = 1;
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    pirn_wg_go(&wg, fails);
    pirn_wg_wait(&wg);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
