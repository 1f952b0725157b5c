/* SPDX-License-Identifier: MIT */
/*
 * Number 85: the program ends by exit() while the report is under way; that is completed first.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: slow\nlast word\n\ngoroutine \d+ \[running\] panics:\n(\t.*\n)+\tcreated by
 * procs: 2,4
 */
#include <pirn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pirn_sem reporting;

static void last_word(const char *message)
{
    (void)message;
    pirn_sem_release(&reporting, 1);
    usleep(50000);
    if (write(2, "last word\n", 10) < 0) {
        _exit(5);
    }
}

static void panics(void)
{
    pirn_panic("slow");
}

static int start(void *arg)
{
    (void)arg;
    pirn_go(panics);
    pirn_sem_acquire(&reporting, 1);
    exit(0);
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.on_fatal = last_word}, start, NULL);
}
