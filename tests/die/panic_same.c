/* SPDX-License-Identifier: MIT */
/*
 * Number 81: twice with the same words, but not recovered.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: first\n\tpanic: first\n\ngoroutine 1 \[running\] main:\n\t(panics at .*panic_same\.c:\d+|\S*panic_same\+0x\w+)\n
 */
#include <pirn.h>

static void panics(const char *text)
{
    pirn_panic("%s", text);
}

static void recovers(void)
{
    pirn_recover();
}

static void recovers_and_panics(const char *text)
{
    pirn_recover();
    pirn_panic("%s", text);
}

static void exits(void)
{
    pirn_exit();
}

static int start(void *arg)
{
    (void)arg;
    (void)recovers;
    (void)recovers_and_panics;
    (void)exits;
    pirn_defer(panics, "first");
    panics("first");
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
