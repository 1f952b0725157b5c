/* SPDX-License-Identifier: MIT */
/*
 * Number 91: many panic at once, and main returns meanwhile (85); there is one report, and it is complete.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: of (\d+)\n\ngoroutine \d+ \[running\] panics:\n\t(panics at .*panic_many\.c:\d+|\S*panic_many\+0x\w+)\n(\t.*\n)+(\ngoroutine \d+ \[.*\].*:\n(\t.*\n)+)*\Z
 * procs: 2,4,16
 */
#include <pirn.h>

static void panics(int n)
{
    pirn_panic("of %d", n);
}

static void fails(void *arg)
{
    (void)arg;
    pirn_panic("recovered");
}

static int start(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++) {
        pirn_panic_free(pirn_try(fails, NULL));
        pirn_go(panics, i);
    }
    pirn_yield();
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
