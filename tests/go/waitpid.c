/* SPDX-License-Identifier: MIT */
/* pirn_wait_pid. */
#include "go/files.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that ends with this code, once a byte comes, or the pipe is closed; fd is its other end. */
static pid_t child(int code, int *fd)
{
    int fds[2];
    char byte;
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        close(fds[1]);
        _exit(read(fds[0], &byte, 1) == 1 ? code : code + 1);
    }
    close(fds[0]);
    *fd = fds[1];
    return pid;
}

static void end_child(int fd)
{
    CHECK_EQ(write(fd, "x", 1), 1);
    close(fd);
}

TEST_RUN_ATTR(waits_for_a_child, PROCS)
{
    int fd, status = -1;
    pid_t pid = child(7, &fd);
    end_child(fd);
    CHECK_EQ(pirn_wait_pid(pid, &status), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(pirn_wait_pid(pid, &status), -ECHILD);
    pid = child(7, &fd);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(pirn_wait_pid(pid, &status), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(fd);
    pid = child(0, &fd);
    end_child(fd);
    CHECK_EQ(pirn_wait_pid(pid, NULL), pid);
    CHECK_EQ(pirn_wait_pid(-1, NULL), -ECHILD);
    CHECK_EQ(pirn_wait_pid(1, NULL), -ECHILD);
    CHECK_EQ(pirn_wait_pid(getpid(), NULL), -ECHILD);
}

static void needs_pidfds(void)
{
    int fd = test_on_valgrind() ? -1 : (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd < 0)
        SKIP("there are no pidfds here: each wait takes a thread");
    close(fd);
}

static atomic_int waited;

static void waits(pid_t pid, int code)
{
    int status = -1;
    CHECK_EQ(pirn_wait_pid(pid, &status), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), code);
    atomic_fetch_add(&waited, 1);
}

/* The descriptor by which it waits has a number that was closed behind pirn's back, and had been cancelled. */
TEST_RUN_ATTR(a_number_with_a_past, PROCS)
{
    int fd[2], status = -1;
    CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        usleep(5000);
        _exit(7);
    }
    CHECK_EQ(pirn_fd_cancel(fd[0]), 0);
    CHECK_EQ(close(fd[0]), 0);
    CHECK_EQ(pirn_wait_pid(pid, &status), pid);
    CHECK_EQ(WEXITSTATUS(status), 7);
    CHECK_EQ(close(fd[1]), 0);
}

/* A child that is dead, but that its tracer still has: it is waited for without spinning. */
TEST_RUN_ATTR(a_traced_child, PROCS)
{
    int dead[2], status = -1;
    char c = 0;
    CHECK_EQ(pipe2(dead, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    pid_t tracer = fork();
    if (tracer == 0) {
        if (ptrace(PTRACE_ATTACH, child, NULL, NULL)) {
            _exit(77);
        }
        while (waitpid(child, NULL, __WALL) != child) {
        }
        kill(child, SIGKILL);
        CHECK_EQ(write(dead[1], &c, 1), 1);
        usleep(200000);
        _exit(0);
    }
    CHECK_EQ(close(dead[1]), 0);
    if (read(dead[0], &c, 1) != 1) {
        kill(child, SIGKILL);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        CHECK_EQ(waitpid(tracer, NULL, 0), tracer);
        SKIP("no tracing here");
    }
    long before = test_cpu_us();
    CHECK_EQ(pirn_wait_pid(child, &status), child);
    CHECK(WIFSIGNALED(status));
    CHECK_LT(test_cpu_us() - before, 60000);
    CHECK_EQ(pirn_wait_pid(tracer, &status), tracer);
    CHECK_EQ(close(dead[0]), 0);
}

/* Many at a time, without a thread for each. */
TEST_RUN_ATTR(many_children, PROCS, .timeout = 60)
{
    needs_pidfds();
    enum { N = 40 };
    pirn_wg wg = {0};
    int fds[N];
    uint64_t threads = metrics().threads;
    for (int i = 0; i < N; i++)
        pirn_wg_go(&wg, waits, child(i, &fds[i]), i);
    for (int i = 0; i < 100; i++)
        pirn_yield();
    CHECK_EQ(atomic_load(&waited), 0);
    CHECK_LE(metrics().threads, threads + (uint64_t)pirn_procs(0) + 4);
    for (int i = N; i-- > 0;)
        end_child(fds[i]);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&waited), N);
}

static void waits_in(pirn_ctx *ctx, pid_t pid, int err)
{
    pirn_ctx *old = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_wait_pid(pid, NULL), err);
    pirn_ctx_use(old);
}

TEST_RUN_ATTR(a_context_ends_the_wait, PROCS)
{
    int fd, fds = count_fds();
    pirn_wg wg = {0};
    pid_t pid = child(3, &fd);
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_wg_go(&wg, waits_in, ctx, pid, -ECANCELED);
    pirn_wg_go(&wg, waits_in, ctx, pid, -ECANCELED);
    pirn_sleep(PIRN_MS);
    pirn_ctx_cancel(ctx, 0);
    pirn_wg_wait(&wg);
    waits_in(ctx, pid, -ECANCELED);
    waits_in(ctx, -1, -ECANCELED);
    end_child(fd);
    SLEEP_UNTIL(kill(pid, 0) == 0
                && waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0);
    waits_in(ctx, pid, pid); /* it has ended: that wins */
    pirn_ctx_release(ctx);
    ctx = pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_MS);
    pid = child(3, &fd);
    waits_in(ctx, pid, -ETIMEDOUT);
    pirn_ctx_release(ctx);
    /* any child: there is no descriptor for that */
    ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 5 * PIRN_MS);
    waits_in(ctx, -1, -ETIMEDOUT);
    pirn_ctx_release(ctx);
    ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_wg_go(&wg, waits_in, ctx, -1, pid);
    pirn_sleep(PIRN_MS);
    end_child(fd);
    pirn_wg_wait(&wg);
    pirn_ctx_release(ctx);
    CHECK_EQ(pirn_wait_pid(pid, NULL), -ECHILD);
    CHECK_LE(count_fds(), fds + 1); /* the eventfd of the poller */
}

/* Two wait for the same: one gets it. */
static atomic_int got, lost;

static void competes(pid_t pid)
{
    pid_t r = pirn_wait_pid(pid, NULL);
    CHECK(r == pid || r == -ECHILD);
    atomic_fetch_add(r == pid ? &got : &lost, 1);
}

TEST_RUN_ATTR(one_gets_it, PROCS)
{
    pirn_wg wg = {0};
    int fd;
    pid_t pid = child(0, &fd);
    for (int i = 0; i < 5; i++)
        pirn_wg_go(&wg, competes, pid);
    pirn_yield();
    end_child(fd);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&got), 1);
    CHECK_EQ(atomic_load(&lost), 4);
}

/* The kernel buries them itself: as with waitpid, nothing is left to be known. */
TEST_RUN_ATTR(children_that_are_ignored, PROCS)
{
    int fd;
    signal(SIGCHLD, SIG_IGN);
    pid_t pid = child(0, &fd);
    end_child(fd);
    CHECK_EQ(pirn_wait_pid(pid, NULL), -ECHILD);
    signal(SIGCHLD, SIG_DFL);
}

static pid_t left_pid;

static int leaves_waits_behind(void *arg)
{
    for (int i = 0; i < 10; i++)
        pirn_go(waits, *(pid_t *)arg, 0);
    for (int i = 0; i < 100; i++)
        pirn_yield();
    return 1;
}

TEST_ATTR(the_end_closes_what_waits, PROCS)
{
    needs_pidfds();
    int fd, fds = count_fds();
    left_pid = child(0, &fd);
    CHECK_EQ(pirn_run(leaves_waits_behind, &left_pid), 1);
    end_child(fd);
    CHECK_EQ(count_fds(), fds);
    CHECK_EQ(pirn_wait_pid(left_pid, NULL), left_pid); /* without a runtime */
    CHECK_EQ(pirn_wait_pid(left_pid, NULL), -ECHILD);
}

static void *waits_on_thread(void *arg)
{
    pid_t pid = *(pid_t *)arg;
    CHECK_EQ(pirn_wait_pid(pid, NULL), pid);
    return NULL;
}

TEST_ATTR(from_another_thread, .procs = "1,4")
{
    int fd;
    pthread_t t;
    CHECK_EQ(pirn_start(NULL), 0);
    pid_t pid = child(0, &fd);
    CHECK_EQ(pthread_create(&t, NULL, waits_on_thread, &pid), 0);
    end_child(fd);
    pthread_join(t, NULL);
    CHECK_EQ(pirn_stop(), 0);
}
