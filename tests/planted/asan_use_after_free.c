/* SPDX-License-Identifier: MIT */
/*
 * AddressSanitizer names both goroutines' functions.
 * expect-exit: 1
 * expect-stderr: ERROR: AddressSanitizer: heap-use-after-free
 * expect-stderr-regex: #\d+ 0x[0-9a-f]+ in uses
 * expect-stderr-regex: freed by thread T\d+(.|\n)*in frees
 * procs: 1,4
 */
#include <pirn.h>
#include <stdlib.h>

static void frees(char *p)
{
    free(p);
    __asm__ volatile("");
}

static void uses(char *p, pirn_wg *freed)
{
    pirn_wg_wait(freed);
    *(volatile char *)p = 1;
}

static int start(void *arg)
{
    pirn_wg freed = {0}, used = {0};
    char *p = malloc(10);
    pirn_wg_go(&freed, frees, p);
    pirn_wg_go(&used, uses, p, &freed);
    pirn_wg_wait(&used);
    return arg != NULL;
}

int main(void)
{
    return pirn_run(start, NULL);
}
