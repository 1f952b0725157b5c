/* SPDX-License-Identifier: MIT */
/*
 * Without memory a panic is recovered, and reported, all the same.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: no memory for 42\n\ngoroutine 1 \[running\] main:\n\t(fails at .*panic_no_memory\.c:\d+|\S*panic_no_memory\+0x\w+)\n\t(start at .*panic_no_memory\.c:\d+|\S*panic_no_memory\+0x\w+)\n(\t\S+\+0x\w+\n)*\tstarted by pirn_run\n
 * expect-stdout: recovered 20
 * skip-in: asan malloc is the sanitizer's
 * skip-in: tsan malloc is the sanitizer's
 */
#include <pirn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool none;

/* In place of libc's, for the library too. */
void *malloc(size_t size)
{
    extern void *__libc_malloc(size_t);
    return none ? NULL : __libc_malloc(size);
}

static void fails(void *arg)
{
    pirn_panic("no memory for %d", *(int *)arg);
}

static int start(void *arg)
{
    static char text[64];
    int n = 42, recovered = 0;
    (void)arg;
    none = true;
    for (int i = 0; i < 20; i++) {
        pirn_panic_info *p = pirn_try(fails, &n);
        recovered += p && !strcmp(pirn_panic_message(p), "no memory for 42");
        pirn_panic_free(p);
    }
    setvbuf(stdout, text, _IOFBF, sizeof text);
    printf("recovered %d\n", recovered);
    fflush(stdout);
    fails(&n);
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL);
}
