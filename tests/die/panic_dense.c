/* SPDX-License-Identifier: MIT */
/*
 * On a stack of 2 KB there is room for it.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: small 7\n\ngoroutine \d+ \[running\]:\n\t(fails at .*panic_dense\.c:\d+|\S*panic_dense\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1
 */
#include <pirn.h>

static void fails(void *arg)
{
    (void)arg;
    pirn_panic("small %d", 7);
}

static int start(void *arg)
{
    (void)arg;
    if (pirn_spawn(&(pirn_attr){.stack_size = PIRN_STACK_DENSE_2K}, fails, NULL)) {
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
