/* SPDX-License-Identifier: MIT */
/*
 * Of a recursion with more frames than are shown, both ends are; and the same line once.
 * expect-exit: 2
 * expect-stderr-regex: ^goroutine \d+ \[running\] fails:\n(\t(down at .*overflow_deep\.c:\d+|\S*overflow_deep\+0x\w+)\n){1,3}\t\.\.\. the same, \d\d times more\n\t\.\.\. \d{3,} frames \.\.\.\n(\t(down at .*overflow_deep\.c:\d+|\S*overflow_deep\+0x\w+)\n){1,3}\t\.\.\. the same, \d+ times more\n(\t(down at .*overflow_deep\.c:\d+|\S*overflow_deep\+0x\w+)\n)?\t(begins at .*overflow_deep\.c:\d+|\S*overflow_deep\+0x\w+)\n\t(fails at .*overflow_deep\.c:\d+|\S*overflow_deep\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at
 * skip-in: asan the frames are others
 * skip-in: tsan the frames are others
 */
#include <pirn.h>

static __attribute__((noinline)) int down(volatile int *n)
{
    volatile int here[20] = {*n + 1};
    if (here[0] < 0)
        return 0;
    int below = down(here);
    __asm__ volatile("" : "+r"(below)); /* no tail call */
    return below + here[3];
}

static __attribute__((noinline)) int begins(void)
{
    int zero = 0, result = down(&zero);
    __asm__ volatile("" : "+r"(result));
    return result;
}

static void fails(void)
{
    begins();
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
