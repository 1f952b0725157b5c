/* SPDX-License-Identifier: MIT */
/*
 * No instruction, or the trap that a compiler puts where nothing can come to.
 * expect-signal: SIGILL
 * expect-stderr-regex: \Afatal error: SIGILL at address 0x\w+: illegal instruction, or a trap of the compiler's\n\tpc=0x\w+ sp=0x\w+\n\ngoroutine \d+ \[running\] fails:\n\t(fails at .*fault_illegal\.c:\d+|\S*fault_illegal\+0x\w+)\n
 * skip-in: aarch64 the trap is SIGTRAP
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include <pirn.h>

static void fails(void)
{
    __builtin_trap();
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
