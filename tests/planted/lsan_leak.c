/* SPDX-License-Identifier: MIT */
/*
 * A true leak of a goroutine is found all the same.
 * expect-exit: 23
 * expect-stderr: ERROR: LeakSanitizer: detected memory leaks
 * expect-stderr: Direct leak of 4711 byte(s) in 1 object(s) allocated from:
 * expect-stderr-regex: #\d+ 0x[0-9a-f]+ in loses
 * expect-stderr: SUMMARY: AddressSanitizer: 4711 byte(s) leaked in 1 allocation(s).
 * env: LSAN_OPTIONS=exitcode=23
 * procs: 1,4
 */
#include <pirn.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int waiting;

static __attribute__((noinline)) void loses(void)
{
    char *volatile p = malloc(4711);
    p = NULL;
    (void)p;
}

static __attribute__((noinline)) void forget(void)
{
    volatile char junk[4096];
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = 0;
}

static void waits(pirn_chan(int) c)
{
    char *volatile only_here = malloc(100);
    loses();
    forget();
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv(c, NULL);
    free(only_here);
}

static int start(void *arg)
{
    (void)arg;
    pirn_go(waits, pirn_chan_make(int, 0));
    while (atomic_load(&waiting) < 1)
        pirn_yield();
    for (int i = 0; i < 10; i++)
        pirn_yield();
    exit(0);
}

int main(void)
{
    return pirn_run(start, NULL);
}
