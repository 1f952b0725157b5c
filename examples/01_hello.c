/* SPDX-License-Identifier: MIT */
/*
 * Hello from ten goroutines.
 *
 *     cc 01_hello.c $(pkg-config --cflags --libs pirn) && ./a.out
 *
 * pirn_run() starts the runtime and calls its function as the first goroutine.
 * When that returns the program goes on behind pirn_run(), and goroutines that
 * are left are dropped: so the first one waits for the others, with a wait group.
 */
#include <pirn.h>
#include <stdio.h>

/* Any function can be a goroutine; here with an int and a string. */
static void hello(int i, const char *word)
{
    printf("%s from goroutine %d\n", word, i);
}

static int start(void *arg)
{
    (void)arg;
    pirn_wg wg = {0}; /* counts the goroutines that are under way */
    for (int i = 0; i < 10; i++) {
        pirn_wg_go(&wg, hello, i, "hello"); /* Go: go hello(i, "hello") */
    }
    pirn_wg_wait(&wg); /* the lines come in any order, but all have come now */
    return 0;
}

int main(void)
{
    return pirn_run(start, NULL); /* what start() returned */
}
