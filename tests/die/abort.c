/* SPDX-License-Identifier: MIT */
/*
 * abort() in a goroutine says where, once, and ends the process as ever.
 * expect-signal: SIGABRT
 * expect-stderr-regex: \Afatal error: SIGABRT: abort\(\) was called\n\tpc=0x\w+ sp=0x\w+\n\ngoroutine \d+ \[running\] fails:\n(\t.*\n)+?\t(gives_up at .*abort\.c:\d+|\S*abort\+0x\w+)\n\t(fails at .*abort\.c:\d+|\S*abort\+0x\w+)\n(\t\S+\+0x\w+\n)*\tcreated by goroutine 1 at .*\n\ngoroutine 1 \[(wait group wait|running).*\] main:\n(?!(.*\n)*fatal)
 * procs: 1,4
 * skip-in: tsan the sanitizer puts the signal off
 */
#include <pirn.h>
#include <stdlib.h>

static __attribute__((noinline)) void gives_up(void)
{
    abort();
}

static void fails(void)
{
    gives_up();
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
