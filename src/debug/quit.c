/* SPDX-License-Identifier: MIT */
/*
 * SIGQUIT (^\ in a terminal) prints what every goroutine does, and ends the program with 2. The handler
 * only leaves word; sysmon, which never waits for anybody, does the rest. A program that has a handler of
 * its own for it, or ignores it, is left alone.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "sched/sched.h"

#define STOP_WITHIN                                                                                \
    ((int64_t)200 * 1000 * 1000) /* those that have not stopped are shown as running */

static struct {
    at_u32 asked;
    bool installed;
} quit;

static void handler(int sig)
{
    int saved = errno;
    if (unlikely(forked)) { /* sysmon is not here */
        signal(sig, SIG_DFL);
        raise(sig);
    } else {
        at_store(&quit.asked, 1, RELAXED);
        sysmon_kick();
    }
    errno = saved;
}

/* One report at a time: a goroutine that fails just now has the word. */
static void quit_now(void)
{
    report_begin();
    world_stop(now_ns() + STOP_WITHIN);
    say("SIGQUIT: quit\n");
    dump_all(STDERR_FILENO);
    say("\n");
    _exit(2);
}

void quit_if_asked(void)
{
    if (unlikely(at_load(&quit.asked, RELAXED))) {
        quit_now();
    }
}

void quit_start(void)
{
    struct sigaction now, ours = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigfillset(&ours.sa_mask);
    at_store(&quit.asked, 0, RELAXED);
    quit.installed = sched.config.flags & PIRN_F_SIGQUIT && sigaction(SIGQUIT, NULL, &now) == 0
                     && now.sa_handler == SIG_DFL && sigaction(SIGQUIT, &ours, NULL) == 0;
}

/* Sysmon has ended. One that has come meanwhile is not lost. */
void quit_stop(void)
{
    struct sigaction now, none = {.sa_handler = SIG_DFL};
    if (quit.installed && sigaction(SIGQUIT, NULL, &now) == 0 && now.sa_handler == handler) {
        sigaction(SIGQUIT, &none, NULL);
    }
    quit.installed = false;
    if (at_load(&quit.asked, RELAXED)) {
        raise(SIGQUIT);
    }
}
