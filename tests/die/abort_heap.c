/* SPDX-License-Identifier: MIT */
/*
 * The heap finds itself damaged, and has its locks in its hands: a report needs none of it.
 * expect-signal: SIGABRT
 * expect-stderr: double free
 * expect-stderr-regex: ^fatal error: SIGABRT: abort\(\) was called\n\tpc=0x\w+ sp=0x\w+\n\ngoroutine \d+ \[running\] fails:\n(\t.*\n)+?\t(fails at .*abort_heap\.c:\d+|\S*abort_heap\+0x\w+)\n
 * skip-in: asan the heap is the sanitizer's
 * skip-in: tsan the heap is the sanitizer's
 * skip-in: msan the heap is the sanitizer's
 * env: LIBC_FATAL_STDERR_=1
 */
#include <pirn.h>
#include <stdlib.h>

/* Too large for the cache of the thread: it is found out with the lock of the arena held. */
static void fails(void)
{
    char *volatile p = malloc(100000), *volatile q = malloc(100000);
    free(p);
    free(p);
    free(q);
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
