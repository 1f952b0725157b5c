/* SPDX-License-Identifier: MIT */
/*
 * A child of fork() has one thread and none of the runtime's: a call into pirn there is fatal, with a
 * message that says so. Where no runtime runs, the child may start one.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "go/busy.h"

static pirn_chan(int) c;
static pirn_mutex mutex;
static pirn_wg wg;

static void nothing(void)
{
}

static int returns_seven(void *arg)
{
    (void)arg;
    return 7;
}

enum { BLOCKING_END = 10, CALLS, BLOCKING };

static void call(int which)
{
    switch (which) {
    case 0: pirn_yield(); break;
    case 1: pirn_go(nothing); break;
    case 2: pirn_sleep(PIRN_MS); break;
    case 3: pirn_chan_send(c, 1); break;
    case 4: (void)pirn_chan_try_send(c, 1); break;
    case 5: pirn_mutex_lock(&mutex); break;
    case 6: pirn_wg_wait(&wg); break;
    case 7: pirn_blocking_begin(); break;
    case 8: pirn_lock_thread(); break;
    case 9: pirn_run(returns_seven, NULL); break;
    case BLOCKING_END: pirn_blocking_end(); break;
    }
}

struct child {
    pid_t pid;
    int said; /* a pipe from its stderr */
};

static void *fork_child(void *arg)
{
    struct child *child = arg;
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    child->pid = fork();
    CHECK_GE(child->pid, 0);
    if (child->pid == 0)
        dup2(fds[1], STDERR_FILENO);
    close(fds[1]);
    child->said = fds[0];
    return NULL;
}

/* A plain read blocks the thread until it has ended. */
static void has_died(struct child child, int which)
{
    char said[8192];
    size_t n = 0;
    int status;
    for (ssize_t r; (r = read(child.said, said + n, sizeof said - 1 - n)) > 0;)
        n += (size_t)r;
    said[n] = '\0';
    close(child.said);
    CHECK_EQ(waitpid(child.pid, &status, 0), child.pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2 || !strstr(said, "fork")) {
        dprintf(STDERR_FILENO, "call %d, status %#x: %s\n", which, (unsigned)status, said);
        FAIL("a call into pirn in a forked child");
    }
    CHECK_EQ(strncmp(said, "fatal error: ", 13), 0);
}

static void check_fatal(int which)
{
    struct child child;
    fork_child(&child);
    if (child.pid == 0) {
        call(which);
        _exit(0);
    }
    has_died(child, which);
}

static void check_all(void)
{
    for (int i = 0; i < CALLS; i++)
        check_fatal(i);
}

TEST_RUN_ATTR(calls_in_a_child, PROCS, .timeout = 60)
{
    c = pirn_chan_make(int, 100);
    check_all();
    CHECK_EQ(pirn_chan_len(c), 0); /* nothing of it happened here */
    pirn_chan_release(c);
}

/* A fork in a blocking section, in which the goroutine may have its P still, or not any more. */
static atomic_bool other_ran;

static void run_other(void)
{
    atomic_store(&other_ran, true);
}

TEST_RUN_ATTR(calls_in_a_child_of_a_section, PROCS, .timeout = 60)
{
    pirn_blocking_begin();
    check_fatal(BLOCKING_END);
    pirn_blocking_end();
    pirn_go(run_other);
    pirn_blocking_begin();
    for (pirn_ns until = pirn_now() + LONG; !atomic_load(&other_ran);) {
        CHECK_LT(pirn_now(), until); /* with one P: it was taken */
        usleep(1000);
    }
    check_fatal(BLOCKING_END);
    pirn_blocking_end();
}

/* The same in the function of pirn_blocking, from which the child returns. */
TEST_RUN_ATTR(child_of_a_function_returns, PROCS, .timeout = 60)
{
    for (int i = 0; i < 3; i++) {
        struct child child;
        pirn_go(nothing);
        pirn_blocking(fork_child, &child);
        if (child.pid == 0)
            _exit(0);
        has_died(child, BLOCKING);
    }
}

/* The child of a thread of the program's own, while a runtime runs. */
static void *check_outside(void *arg)
{
    check_fatal(1);
    check_fatal(3);
    check_fatal(9);
    return arg;
}

TEST_RUN_ATTR(calls_in_a_child_of_a_thread, PROCS, .timeout = 60)
{
    pthread_t t;
    c = pirn_chan_make(int, 100);
    CHECK_EQ(pthread_create(&t, NULL, check_outside, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    pirn_chan_release(c);
}

/* Before a runtime, and after its end, a child is as good as its parent. */
static void run_in_child(void)
{
    int status;
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0)
        _exit(pirn_run(returns_seven, NULL));
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 7);
}

TEST_ATTR(runs_in_a_child, PROCS)
{
    run_in_child();
    CHECK_EQ(pirn_run(returns_seven, NULL), 7);
    if (!TEST_TSAN) /* which has a thread of its own by now */
        run_in_child();
    CHECK_EQ(pirn_run(returns_seven, NULL), 7);
}
