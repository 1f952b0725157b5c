/* SPDX-License-Identifier: MIT */
/*
 * The program ends inside a goroutine, while others wait: what only their stacks know, or the arguments of one
 * that has not begun, is no leak.
 * expect-exit: 7
 * expect-no-stderr: LeakSanitizer
 * procs: 1,4
 */
#include <pirn.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int waiting;

static void waits(pirn_chan(int) c)
{
    char *volatile only_here = malloc(100);
    atomic_fetch_add(&waiting, 1);
    pirn_chan_recv(c, NULL);
    free(only_here);
}

static void not_begun(char *p)
{
    free(p);
}

static int start(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++)
        pirn_go(waits, pirn_chan_make(int, 0));
    while (atomic_load(&waiting) < 10)
        pirn_yield();
    for (int i = 0; i < 10; i++)
        pirn_yield();
    pirn_go(not_begun, malloc(100));
    exit(7);
}

int main(void)
{
    return pirn_run(start, NULL);
}
