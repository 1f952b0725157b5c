/* SPDX-License-Identifier: MIT */
/*
 * The same for a goroutine that ends without another switch.
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: stack overflow: goroutine \d+ outgrew its stack of 2048 bytes; raise \.stack_size$
 * procs: 1,4
 * skip-in: asan dense stacks are full ones under a sanitizer
 * skip-in: tsan dense stacks are full ones under a sanitizer
 */
#include <pirn.h>
#include <string.h>

static __attribute__((noinline)) void too_much(void)
{
    char frame[2500];
    memset(frame, 7, sizeof frame);
    __asm__ volatile("" ::"r"(frame) : "memory");
}

static void overflow(void *arg)
{
    (void)arg;
    too_much();
}

static int start(void *arg)
{
    (void)arg;
    if (pirn_spawn(&(pirn_attr){.stack_size = PIRN_STACK_DENSE_2K}, overflow, NULL)) {
        return 3;
    }
    for (;;) {
        pirn_yield();
    }
}

int main(void)
{
    return pirn_run(start, NULL);
}
