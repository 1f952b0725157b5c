/* SPDX-License-Identifier: MIT */
/*
 * Without guards a canary tells, at the next switch.
 * expect-exit: 2
 * expect-stderr-regex: \Afatal error: stack overflow: goroutine \d+ outgrew its stack of 65536 bytes; raise \.stack_size$
 * env: PIRN_DEBUG=guard=none
 */
#include <pirn.h>
#include <string.h>

/* Too deep by a kilobyte or two: what lies below is the unused room of a guard. */
static __attribute__((noinline)) void overflow(void *arg)
{
    char frame[49 << 10];
    (void)arg;
    memset(frame, 7, sizeof frame);
    __asm__ volatile("" ::"r"(frame) : "memory");
    pirn_yield();
}

static int start(void *arg)
{
    (void)arg;
    if (pirn_spawn(&(pirn_attr){.stack_size = 64 << 10}, overflow, NULL)) {
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
