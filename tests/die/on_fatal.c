/* SPDX-License-Identifier: MIT */
/*
 * The program's own last word comes after the message and before the goroutines.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr-regex: \Afatal error: .*\nlast word: all goroutines are asleep - deadlock!\n\ngoroutine 1
 * procs: 1,4
 * timeout: 10
 */
#include <pirn.h>
#include <string.h>
#include <unistd.h>

static void last_word(const char *message)
{
    ssize_t n = write(2, "last word: ", 11);
    n += write(2, message, strlen(message));
    n += write(2, "\n", 1);
    (void)n;
}

static int start(void *arg)
{
    pirn_wg wg = {0};
    (void)arg;
    pirn_wg_add(&wg, 1);
    pirn_wg_wait(&wg);
    return 0;
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.on_fatal = last_word}, start, NULL);
}
