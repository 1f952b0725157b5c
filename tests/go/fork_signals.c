/* SPDX-License-Identifier: MIT */
/*
 * Signals that pirn handles, in the child of a fork, where nobody would hand them out: they do what they would have
 * done without pirn.
 */
#include <signal.h>
#include <sys/wait.h>

#include "go/busy.h"

#define OF_HANDLER 42
#define IN_VAIN 43

static void ends(int sig)
{
    (void)sig;
    _exit(OF_HANDLER);
}

static void skip_if_late(void)
{
    if (TEST_TSAN)
        SKIP("TSan calls a handler only when its thread calls a function that TSan knows");
}

/* How the child ends that is sent it, twice: what is done once is done for good. */
static int status_of_child(int sig)
{
    int status;
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        raise(sig);
        raise(sig);
        _exit(IN_VAIN);
    }
    while (waitpid(pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    return status;
}

static void check_kills(int sig)
{
    int status = status_of_child(sig);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), sig);
}

TEST_RUN_ATTR(watched_by_a_channel, PROCS)
{
    skip_if_late();
    pirn_chan(int) c = pirn_chan_make(int, 1);
    CHECK_EQ(pirn_signal_notify(c, SIGTERM), 0);
    for (int i = 0; i < 5; i++)
        check_kills(SIGTERM);
    CHECK_EQ(kill(getpid(), SIGTERM), 0); /* here it is as before */
    CHECK_EQ(pirn_chan_get(c), SIGTERM);
    pirn_signal_stop(c);
    pirn_chan_release(c);
}

TEST_RUN_ATTR(watched_by_a_context, PROCS)
{
    skip_if_late();
    pirn_ctx *ctx = pirn_ctx_with_signals(pirn_ctx_background(), (int[]){SIGINT}, 1);
    check_kills(SIGINT);
    CHECK_EQ(pirn_ctx_err(ctx), 0);
    pirn_ctx_release(ctx);
}

/* The program's own handler is called, and one that it ignored is ignored. */
TEST_RUN_ATTR(has_a_handler, PROCS)
{
    skip_if_late();
    pirn_chan(int) c = pirn_chan_make(int, 2);
    CHECK(signal(SIGTERM, ends) != SIG_ERR);
    CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
    CHECK_EQ(pirn_signal_notify(c, SIGTERM), 0);
    CHECK_EQ(pirn_signal_notify(c, SIGHUP), 0);
    CHECK_EQ(status_of_child(SIGTERM), OF_HANDLER << 8);
    CHECK_EQ(status_of_child(SIGHUP), IN_VAIN << 8);
    pirn_signal_stop(c);
    pirn_chan_release(c);
}

/* The report is of the parent's goroutines. */
TEST_RUN_ATTR(sigquit, PROCS)
{
    skip_if_late();
    check_kills(SIGQUIT);
}

/* The same signal as preempts. */
TEST_RUN_ATTR(sigurg, PROCS)
{
    skip_if_late();
    pirn_chan(int) c = pirn_chan_make(int, 1);
    CHECK(signal(SIGURG, ends) != SIG_ERR);
    CHECK_EQ(pirn_signal_notify(c, SIGURG), 0);
    CHECK_EQ(status_of_child(SIGURG), OF_HANDLER << 8);
    pirn_signal_stop(c);
    pirn_chan_release(c);
}
