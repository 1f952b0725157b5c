/* SPDX-License-Identifier: MIT */
/*
 * With .panic_on_fault, and nobody recovers.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: runtime error: invalid memory address or nil pointer dereference\n\ngoroutine 1 \[running\] main:\n\t(start at .*fault_panic\.c:\d+|\S*fault_panic\+0x\w+)\n(\t\S+\+0x\w+\n)*\tstarted by pirn_run\n
 * expect-stdout: deferred
 * skip-in: tsan the sanitizer puts the signal off
 */
#include <pirn.h>
#include <unistd.h>

static void deferred(void)
{
    if (write(1, "deferred\n", 9) < 0) {
        _exit(5);
    }
}

__attribute__((no_sanitize("undefined"))) static int start(void *arg)
{
    pirn_defer(deferred);
    *(volatile int *)arg = 1;
    return 0;
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.panic_on_fault = 1}, start, NULL);
}
