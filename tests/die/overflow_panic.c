/* SPDX-License-Identifier: MIT */
/*
 * A panic with little stack left is reported completely.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: sync: negative WaitGroup counter\n\ngoroutine \d+ \[running\]:\n(\t.*\n)+\tcreated by goroutine 1 .*\n\ngoroutine 1 \[
 * skip-in: asan frames are larger there
 * skip-in: tsan frames are larger there
 */
#include <pirn.h>
#include <string.h>

static char *lowest;

static __attribute__((noinline)) void down(void)
{
    char frame[64];
    __asm__ volatile("" ::"r"(frame) : "memory");
    if (frame > lowest) {
        down();
    } else {
        pirn_wg wg = {0};
        pirn_wg_done(&wg);
    }
    __asm__ volatile("");
}

static void deep(void *arg)
{
    char here, *volatile top = &here;
    (void)arg;
    lowest = top - (48 << 10) + 4096 + 512; /* of 48 KB */
    down();
}

static int start(void *arg)
{
    (void)arg;
    if (pirn_spawn(&(pirn_attr){.stack_size = 64 << 10}, deep, NULL)) {
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
