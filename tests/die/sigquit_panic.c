/* SPDX-License-Identifier: MIT */
/*
 * SIGQUIT while a panic is reported: one report, and it is complete.
 * expect-exit: 2
 * expect-stderr-regex: \Apanic: slow\nlast word\n\ngoroutine \d+ \[running\] panics:\n(\t.*\n)+\tcreated by goroutine 1 at .*\n\ngoroutine 1 \[.*\] main:\n(\t.*\n)+\Z
 * expect-no-stderr: SIGQUIT
 * procs: 1,2,4
 */
#include <pirn.h>
#include <signal.h>
#include <unistd.h>

/* Sysmon sees the signal at once, and has time to speak. */
static void last_word(const char *message)
{
    (void)message;
    kill(getpid(), SIGQUIT);
    usleep(300000);
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
    pirn_go(panics);
    pirn_sleep(60 * PIRN_SEC);
    return arg != NULL;
}

int main(void)
{
    return pirn_run_config(&(pirn_config){.on_fatal = last_word}, start, NULL);
}
