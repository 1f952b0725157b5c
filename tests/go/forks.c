/* SPDX-License-Identifier: MIT */
/*
 * fork() in a goroutine: the child may exec or end; a call into pirn is fatal there (conformance 148,
 * 149; HAZARDS 17, 18).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "go/busy.h"

#define FORKERS 4

static atomic_int forks_left;

static int wait_for(pid_t pid)
{
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid); /* blocks the thread; no EINTR */
    return status;
}

/* --- under load ------------------------------------------------------------------------------- */

static void computes(void)
{
    for (unsigned i = 0; !atomic_load_explicit(&stop_loops, memory_order_relaxed); i++) {
        free(malloc(i % 1000));
        if (TEST_TSAN)
            pirn_yield();
    }
}

static void talks(pirn_chan(int) c)
{
    int v;
    while (!atomic_load(&stop_loops)) {
        if (!pirn_chan_try_send(c, 1))
            (void)pirn_chan_try_recv(c, &v);
        pirn_sleep(100 * PIRN_US);
    }
}

static void forks_and_execs(void)
{
    while (atomic_fetch_sub(&forks_left, 1) > 0) {
        pid_t pid = fork();
        CHECK_GE(pid, 0);
        if (pid == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(99);
        }
        CHECK_EQ(wait_for(pid), 0);
    }
}

static void forks_and_exits(void)
{
    for (int i = 0; atomic_fetch_sub(&forks_left, 1) > 0; i++) {
        pid_t pid = fork();
        CHECK_GE(pid, 0);
        if (pid == 0)
            _exit(i % 100);
        int status = wait_for(pid);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), i % 100);
    }
}

extern char **environ;

static void spawns(void)
{
    while (atomic_fetch_sub(&forks_left, 1) > 0) {
        pid_t pid;
        char *argv[] = {(char *)"true", NULL};
        CHECK_EQ(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ), 0);
        CHECK_EQ(wait_for(pid), 0);
    }
}

static void under_load(void (*fn)(void), int n)
{
    pirn_wg wg = {0};
    pirn_chan(int) c = pirn_chan_make(int, 1);
    uint64_t before = preempted();
    atomic_store(&forks_left, n);
    for (int i = 0; i < pirn_procs(0) + 1; i++)
        pirn_wg_go(&looping, computes);
    pirn_wg_go(&looping, talks, c);
    for (int i = 0; i < FORKERS; i++)
        pirn_wg_go(&wg, fn);
    pirn_wg_wait(&wg);
    if (!TEST_TSAN)
        SLEEP_UNTIL(preempted() > before);
    end_loops();
    pirn_chan_release(c);
}

static int times(void)
{
    return long_form() ? 10000 : TEST_TSAN || TEST_ASAN ? 30 : 100;
}

TEST_RUN_ATTR(fork_and_exec, PROCS, .timeout = 120)
{
    under_load(forks_and_execs, times());
}

TEST_RUN_ATTR(fork_and_exit, PROCS, .timeout = 120)
{
    under_load(forks_and_exits, times());
}

TEST_RUN_ATTR(spawn, PROCS, .timeout = 120)
{
    under_load(spawns, times());
}

/* --- a storm of signals meanwhile (148) ------------------------------------------------------- */

static void *storms(void *arg)
{
    while (!atomic_load(&stop_loops)) {
        kill(getpid(), SIGURG);
        plain_sleep(100 * PIRN_US);
    }
    return arg;
}

TEST_RUN_ATTR(fork_in_a_storm, PROCS, .timeout = 120)
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, storms, NULL), 0);
    under_load(forks_and_execs, times() / 2);
    pthread_join(t, NULL);
}

/* --- what the child inherits ------------------------------------------------------------------ */

static sigset_t at_start;

/* The mask of a new program, as it sees it itself. */
static unsigned long long mask_of_program(void)
{
    int out[2];
    char text[256] = "";
    unsigned long long mask = ~0ULL;
    CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", "exec grep SigBlk /proc/self/status", (char *)NULL);
        _exit(99);
    }
    close(out[1]);
    CHECK_GT(read(out[0], text, sizeof text - 1), 0);
    close(out[0]);
    CHECK_EQ(wait_for(pid), 0);
    CHECK_EQ(sscanf(text, "SigBlk: %llx", &mask), 1);
    return mask;
}

/* Before exec: that of the goroutine's thread, in which nothing is blocked that was not at the start. */
static void check_mask_of_child(void)
{
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        sigset_t now;
        sigprocmask(SIG_SETMASK, NULL, &now);
        for (int sig = 1; sig < NSIG; sig++) {
            if (sigismember(&now, sig) == 1 && sigismember(&at_start, sig) != 1)
                _exit(sig);
        }
        _exit(0);
    }
    CHECK_EQ(wait_for(pid), 0);
}

static void checks_masks(unsigned long long want)
{
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(mask_of_program(), want);
        check_mask_of_child();
        pirn_yield();
    }
}

static int clean_masks(void *want)
{
    pirn_wg wg = {0};
    for (int i = 0; i < pirn_procs(0) + 1; i++)
        pirn_wg_go(&looping, computes);
    for (int i = 0; i < FORKERS; i++)
        pirn_wg_go(&wg, checks_masks, *(unsigned long long *)want);
    pirn_wg_wait(&wg);
    end_loops();
    return 0;
}

TEST_ATTR(mask_is_clean, PROCS, .timeout = 120)
{
    unsigned long long want = mask_of_program();
    sigprocmask(SIG_SETMASK, NULL, &at_start);
    CHECK_EQ(pirn_run(clean_masks, &want), 0);
}

/* --- a handler for SIGCHLD (149) -------------------------------------------------------------- */

static atomic_int ended_children;

static void notes_child(int sig)
{
    (void)sig;
    atomic_fetch_add(&ended_children, 1);
}

TEST_RUN_ATTR(sigchld, PROCS)
{
    if (TEST_TSAN)
        SKIP("ThreadSanitizer puts signals off until a call that it knows");
    struct sigaction sa = {.sa_handler = notes_child, .sa_flags = SA_RESTART | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGCHLD, &sa, NULL), 0);
    for (int i = 1; i <= 10; i++) {
        pid_t pid = fork();
        CHECK_GE(pid, 0);
        if (pid == 0)
            _exit(0);
        CHECK_EQ(wait_for(pid), 0);
        SLEEP_UNTIL(atomic_load(&ended_children) >= i);
    }
}
