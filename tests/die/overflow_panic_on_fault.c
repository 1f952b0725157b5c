/* SPDX-License-Identifier: MIT */
/*
 * Number 96: an overflow can't be recovered, whatever was asked for.
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: stack overflow: goroutine \d+ outgrew its stack of 65536 bytes; raise \.stack_size\n\tgoroutine \d+ "deep": sp=
 * skip-in: asan the sanitizer takes the signal itself
 * skip-in: tsan the sanitizer takes the signal itself
 */
#include "overflow.h"

static void tries(void *arg)
{
    pirn_set_name("deep");
    pirn_panic_free(pirn_try(overflow, arg));
}

static int start(void *arg)
{
    (void)arg;
    (void)overflow_among_neighbours;
    if (pirn_spawn(&(pirn_attr){.stack_size = 64 << 10}, tries, NULL)) {
        return 3;
    }
    for (;;) {
        pirn_yield();
    }
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.panic_on_fault = 1}, start, NULL);
}
