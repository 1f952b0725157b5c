/* SPDX-License-Identifier: MIT */
/*
 * The last word may ask pirn who is there: a logger does.
 * expect-exit: 2
 * expect-first-line: fatal error: all goroutines are asleep - deadlock!
 * expect-stderr: last word of goroutine 0: 1 goroutines, 2 procs
 * timeout: 10
 */
#include <pirn.h>
#include <stdio.h>
#include <unistd.h>

static void last_word(const char *message)
{
    char line[100];
    pirn_metrics_v1 m = {0};
    int n;
    (void)message;
    pirn_metrics(&m);
    n = snprintf(line, sizeof line, "last word of goroutine %d: %d goroutines, %d procs\n",
                 (int)pirn_id(), pirn_num_goroutines(), (int)m.procs);
    if (write(2, line, (size_t)n) != n) {
        _exit(5);
    }
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
    return pirn_run_config(&(pirn_config){.procs = 2, .on_fatal = last_word}, start, NULL);
}
