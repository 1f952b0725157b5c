/* SPDX-License-Identifier: MIT */
/*
 * Stderr is a full pipe that nobody reads, and the runtime has something to say: nothing waits for that. Threads
 * that block lose their P, loops are preempted, threads are made. The line comes when there is room.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fault/deny.h"
#include "go/busy.h"

static int full[2], saved_stderr;
static char text[1 << 17];
static size_t have;

static void fill_stderr(void)
{
    char block[4096];
    memset(block, '.', sizeof block);
    CHECK_EQ(pipe2(full, O_CLOEXEC), 0);
    CHECK_EQ(fcntl(full[1], F_SETFL, O_NONBLOCK), 0);
    for (size_t n = sizeof block; n; n /= 2) {
        while (write(full[1], block, n) > 0) {
        }
    }
    CHECK_EQ(fcntl(full[1], F_SETFL, 0), 0); /* it would wait */
    saved_stderr = dup(STDERR_FILENO);
    CHECK_EQ(dup2(full[1], STDERR_FILENO), STDERR_FILENO);
}

/* Somebody reads: what comes within a while. */
static bool comes(const char *line)
{
    for (pirn_ns until = plain_now() + LONG; plain_now() < until;) {
        struct pollfd p = {.fd = full[0], .events = POLLIN};
        while (have < sizeof text - 1 && poll(&p, 1, 0) == 1) {
            ssize_t n = read(full[0], text + have, sizeof text - 1 - have);
            CHECK_GT(n, 0);
            have += (size_t)n;
        }
        if (strstr(text, line))
            return true;
        pirn_sleep(PIRN_MS);
    }
    return false;
}

static void restore_stderr(void)
{
    CHECK_EQ(dup2(saved_stderr, STDERR_FILENO), STDERR_FILENO);
}

/* --- the others ---------------------------------------------------------------------------------------- */

static int fds[2];
static pirn_wg readers;

static void reads(void)
{
    char byte;
    while (read(fds[0], &byte, 1) < 0)
        CHECK_EQ(errno, EINTR); /* where nothing else helps */
}

/* As many as there are Ps: without sysmon nobody would go on. */
static void goes_on_beside_readers(void)
{
    int n = pirn_procs(0);
    CHECK_EQ(fds[1] ? 0 : pipe2(fds, O_CLOEXEC), 0);
    for (int i = 0; i < n; i++)
        pirn_wg_go(&readers, reads);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(pirn_sleep(2 * PIRN_MS), 0);
    for (int i = 0; i < n; i++)
        CHECK_EQ(write(fds[1], "x", 1), 1);
    pirn_wg_wait(&readers);
}

static void goes_on_beside_loops(void)
{
    if (TEST_TSAN)
        return; /* no preemption */
    start_loops(2 * pirn_procs(0));
    await_preempted(6);
    end_loops();
}

static void goes_on(void)
{
    goes_on_beside_readers();
    goes_on_beside_loops();
    goes_on_beside_readers();
}

/* --- sysmon ------------------------------------------------------------------------------------------------ */

static void nothing(int sig)
{
    (void)sig;
}

TEST_RUN_ATTR(handler_without_a_stack, PROCS, .timeout = 60)
{
    struct sigaction sa = {.sa_handler = nothing};
    fill_stderr();
    CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
    for (pirn_ns until = pirn_now() + 2500 * PIRN_MS; pirn_now() < until;)
        goes_on(); /* sysmon looks once a second */
    CHECK(comes("pirn: the handler of signal 10 has no SA_ONSTACK"));
    restore_stderr();
}

static int without_proc(void *arg)
{
    fill_stderr();
    deny_if_third(SYS_openat, O_RDONLY | O_CLOEXEC, EACCES);
    for (int i = 0; i < 5; i++)
        goes_on();
    CHECK(comes("pirn: cannot read /proc/self/task"));
    restore_stderr();
    return arg != NULL;
}

TEST_ATTR(no_proc, PROCS, .timeout = 60, .once = true)
{
    needs_preemption();
    needs_filters();
    CHECK_EQ(pirn_run(without_proc, NULL), 0);
}

/* --- the factory --------------------------------------------------------------------------------------------- */

static void computes(void)
{
    for (pirn_ns until = plain_now() + 5 * PIRN_MS; plain_now() < until;) {
    }
}

/* For longer than sysmon's looks are apart. */
static void blocks(void)
{
    plain_sleep(25 * PIRN_MS);
}

/* It says so, and gives the P that waits for a thread to somebody else. */
static int without_threads(void *arg)
{
    pirn_wg wg = {0};
    fill_stderr();
    deny(SYS_clone3, EAGAIN);
    deny(SYS_clone, EAGAIN);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 20; i++) {
            if (i % 2)
                pirn_wg_go(&wg, computes);
            else
                pirn_wg_go(&wg, blocks);
        }
        pirn_wg_wait(&wg);
    }
    CHECK(comes("pirn: cannot make a thread"));
    restore_stderr();
    return arg != NULL;
}

static void run_without_threads(void *arg)
{
    CHECK_EQ(pirn_run(without_threads, arg), 0);
    _exit(0); /* LeakSanitizer would want one */
}

TEST_ATTR(no_threads, PROCS, .timeout = 60)
{
    needs_filters();
    CHECK_EQ(test_in_child(run_without_threads, NULL), 0);
}

/* --- what is fatal is said in full ------------------------------------------------------------------------------ */

static int fails(void *arg)
{
    pirn_panic("the last word");
    return arg != NULL;
}

TEST_ATTR(fatal_ones_wait, .procs = "1,4", .timeout = 60)
{
    int status;
    fill_stderr();
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setenv("PIRN_DEBUG", "nonsense", 1); /* that is said as it begins, but not at once */
        _exit(pirn_run(fails, NULL));
    }
    restore_stderr();
    close(full[1]);
    plain_sleep(300 * PIRN_MS); /* it waits by now, most likely */
    CHECK_EQ(waitpid(pid, &status, WNOHANG), 0);
    for (ssize_t n; (n = read(full[0], text + have, sizeof text - 1 - have)) > 0;)
        have += (size_t)n;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(WEXITSTATUS(status), 2);
    const char *notice = strstr(text, "pirn: PIRN_DEBUG: nonsense");
    const char *last = strstr(text, "\npanic: the last word\n");
    CHECK(notice && last && notice < last);
    CHECK(strstr(last, "goroutine 1 [running]"));
}
