/* SPDX-License-Identifier: MIT */
/*
 * A call of NULL: there is no frame there, but one that has called.
 * expect-signal: SIGSEGV
 * expect-stderr-regex: \Afatal error: SIGSEGV at address 0x0: a call of NULL, or near it\n\tpc=0x0 sp=0x\w+\n\ngoroutine \d+ \[running\] fails:\n\t0x0, in no module\n\t(fails at .*fault_call\.c:\d+|\S*fault_call\+0x\w+)\n
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include <pirn.h>

__attribute__((no_sanitize("undefined"))) static void fails(void)
{
    void (*volatile fn)(void) = NULL;
    fn();
    __asm__ volatile(""); /* its frame is still there */
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
