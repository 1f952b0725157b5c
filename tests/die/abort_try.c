/* SPDX-License-Identifier: MIT */
/*
 * Nor is abort() ever a panic.
 * expect-signal: SIGABRT
 * expect-first-line: fatal error: SIGABRT: abort() was called
 * skip-in: tsan the sanitizer puts the signal off
 */
#include <pirn.h>
#include <stdlib.h>

static void fails(void *arg)
{
    (void)arg;
    abort();
}

static int start(void *arg)
{
    pirn_panic_free(pirn_try(fails, arg));
    return 3;
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.panic_on_fault = 1}, start, NULL);
}
