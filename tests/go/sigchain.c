/* SPDX-License-Identifier: MIT */
/*
 * Handlers of the program's beside those of pirn (conformance 150; HAZARDS 13, 15): for the signal that
 * preempts, which they share; without a signal stack of their own; and signal stacks that C code swaps.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "go/busy.h"

/* --- the shared signal -------------------------------------------------------------------------- */

static atomic_int from_elsewhere;

static void notes_those_from_elsewhere(int sig, siginfo_t *info, void *context)
{
    (void)context;
    CHECK_EQ(sig, SIGURG);
    if (info->si_code == SI_USER) {
        CHECK_EQ(info->si_pid, getpid());
        atomic_fetch_add(&from_elsewhere, 1);
    }
}

static void install(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
    struct sigaction sa = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags};
    CHECK_EQ(sigaction(sig, &sa, NULL), 0);
}

static void *handler_of(int sig)
{
    struct sigaction sa;
    CHECK_EQ(sigaction(sig, NULL, &sa), 0);
    return (void *)sa.sa_sigaction;
}

/* Each of them comes, one after the other, and the loops are still stopped. */
static void both_work(void)
{
    start_loops(2 * pirn_procs(0));
    for (int i = 0; i < 20; i++) {
        int before = atomic_load(&from_elsewhere);
        CHECK_EQ(kill(getpid(), SIGURG), 0);
        SLEEP_UNTIL(atomic_load(&from_elsewhere) == before + 1);
    }
    await_preempted(20);
    end_loops();
}

static int beside_the_one_before(void *arg)
{
    both_work();
    return arg != NULL;
}

TEST_ATTR(installed_before, PROCS, .timeout = 60)
{
    needs_preemption();
    install(SIGURG, notes_those_from_elsewhere, SA_RESTART);
    void *mine = handler_of(SIGURG);
    CHECK_EQ(pirn_run(beside_the_one_before, NULL), 0);
    CHECK_EQ(handler_of(SIGURG), mine); /* as it was */
}

static sigjmp_buf out;

static void jumps_out(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    atomic_fetch_add(&from_elsewhere, 1);
    siglongjmp(out, 1);
}

static int jumps_out_again_and_again(void *arg)
{
    for (volatile int i = 0; i < 5; i++) {
        if (!sigsetjmp(out, 1)) {
            CHECK_EQ(pthread_kill(pthread_self(), SIGURG), 0);
            return 1; /* it did not come */
        }
        CHECK_EQ(atomic_load(&from_elsewhere), i + 1);
    }
    return arg != NULL;
}

/* One that never returns. */
TEST_ATTR(jumps_out_of_the_handler, .procs = "1")
{
    needs_preemption();
    install(SIGURG, jumps_out, SA_RESTART);
    CHECK_EQ(pirn_run(jumps_out_again_and_again, NULL), 0);
}

/* On its thread's own stack, since it has no other: from a shallow frame first, and then from deeper ones. */
__attribute__((noinline)) static void jumps_out_below(int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    if (depth > 0) {
        jumps_out_below(depth - 1);
        CHECK_EQ(frame[0], depth); /* no tail call */
        return;
    }
    int before = atomic_load(&from_elsewhere);
    if (!sigsetjmp(out, 1)) {
        CHECK_EQ(pthread_kill(pthread_self(), SIGURG), 0);
        FAIL("it did not come");
    }
    CHECK_EQ(atomic_load(&from_elsewhere), before + 1);
}

static void *jumps_from_deeper_and_deeper(void *arg)
{
    for (int depth = 0; depth < 5; depth++)
        jumps_out_below(depth);
    jumps_out_below(2);
    return arg;
}

TEST(jumps_out_without_a_stack)
{
    pthread_t t;
    needs_preemption();
    install(SIGURG, jumps_out, SA_RESTART);
    CHECK_EQ(pirn_start(NULL), 0);
    CHECK_EQ(pthread_create(&t, NULL, jumps_from_deeper_and_deeper, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(atomic_load(&from_elsewhere), 6);
    CHECK_EQ(pirn_stop(), 0);
}

/* Loops keep the runtime awake until it sees the new one, within a second or so. */
static void install_later(void (*fn)(int, siginfo_t *, void *))
{
    start_loops(2);
    await_preempted(2);
    void *pirns = handler_of(SIGURG);
    install(SIGURG, fn, SA_RESTART | SA_ONSTACK);
    SLEEP_UNTIL(handler_of(SIGURG) == pirns);
    end_loops();
}

TEST_RUN_ATTR(installed_later, PROCS, .timeout = 60)
{
    needs_preemption();
    install_later(notes_those_from_elsewhere);
    both_work();
}

/* It calls the one that was there before it, as handlers should. */
static struct sigaction before_mine;

static void calls_the_one_before(int sig, siginfo_t *info, void *context)
{
    notes_those_from_elsewhere(sig, info, context);
    if (before_mine.sa_flags & SA_SIGINFO)
        before_mine.sa_sigaction(sig, info, context);
}

TEST_RUN_ATTR(installed_later_and_chains, PROCS, .timeout = 60)
{
    needs_preemption();
    start_loops(1);
    await_preempted(1);
    CHECK_EQ(sigaction(SIGURG, NULL, &before_mine), 0);
    end_loops();
    install_later(calls_the_one_before);
    both_work();
}

/* --- without a signal stack --------------------------------------------------------------------- */

static atomic_int on_signal_stack, elsewhere;

static void notes_its_stack(int sig, siginfo_t *info, void *context)
{
    stack_t st;
    char *here = __builtin_frame_address(0);
    (void)sig, (void)info, (void)context;
    CHECK_EQ(sigaltstack(NULL, &st), 0);
    bool there = here >= (char *)st.ss_sp && here < (char *)st.ss_sp + st.ss_size;
    CHECK_EQ(there, (st.ss_flags & SS_ONSTACK) != 0);
    atomic_fetch_add(there ? &on_signal_stack : &elsewhere, 1);
}

static void raises(int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(raise(SIGUSR1), 0);
        pirn_yield();
    }
}

static int all_raise(void *arg)
{
    pirn_wg wg = {0};
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, raises, 20);
    pirn_wg_wait(&wg);
    return arg != NULL;
}

TEST_ATTR(without_a_stack_before, PROCS)
{
    install(SIGUSR1, notes_its_stack, SA_RESTART);
    CHECK_EQ(pirn_run(all_raise, NULL), 0);
    CHECK_EQ(atomic_load(&on_signal_stack), 200);
    CHECK_EQ(atomic_load(&elsewhere), 0);
}

/* Later: it is left as it is, runs on the goroutine's stack, and that is said once. */
static int installs_later(void *arg)
{
    char text[512];
    int own[2], err = dup(STDERR_FILENO);
    CHECK_EQ(pipe2(own, O_CLOEXEC), 0);
    CHECK_EQ(dup2(own[1], STDERR_FILENO), STDERR_FILENO);
    install(SIGUSR1, notes_its_stack, SA_RESTART);
    struct pollfd said = {.fd = own[0], .events = POLLIN};
    SLEEP_UNTIL(poll(&said, 1, 0) == 1);
    ssize_t n = read(own[0], text, sizeof text);
    CHECK_EQ(dup2(err, STDERR_FILENO), STDERR_FILENO);
    CHECK_EQ(write(err, text, (size_t)n), n);
    for (pirn_ns until = pirn_now() + 5 * PIRN_SEC / 2; pirn_now() < until;)
        pirn_sleep(PIRN_MS); /* if it were said twice, it would be now */
    all_raise(NULL);
    CHECK_EQ(atomic_load(&on_signal_stack), 0);
    CHECK_EQ(atomic_load(&elsewhere), 200);
    return arg != NULL;
}

static void run_installs_later(void *arg)
{
    CHECK_EQ(pirn_run(installs_later, arg), 0);
}

TEST_ATTR(without_a_stack_later, PROCS, .timeout = 60)
{
    static const char word[] = "pirn: the handler of signal 10 has no SA_ONSTACK";
    CHECK_EQ(SIGUSR1, 10);
    int status = test_in_child(run_installs_later, NULL);
    fputs(test_said, stderr);
    CHECK_EQ(status, 0);
    const char *first = strstr(test_said, word);
    CHECK(first != NULL);
    CHECK(strstr(first + 1, word) == NULL);
}

/* --- stacks that are swapped -------------------------------------------------------------------- */

#define STACK ((size_t)(256 << 10))

static bool same(const stack_t *a, const stack_t *b)
{
    return (a->ss_flags & SS_DISABLE) == (b->ss_flags & SS_DISABLE)
           && (a->ss_flags & SS_DISABLE || (a->ss_sp == b->ss_sp && a->ss_size == b->ss_size));
}

static atomic_int used;

/* Something lies there: a handler ran on it. */
static bool is_used(const char *stack)
{
    for (size_t i = 0; i < STACK; i++) {
        if (stack[i])
            return true;
    }
    return false;
}

/* A library that has a signal stack of its own while it computes: it is stopped on that one. */
static void swaps(bool none)
{
    stack_t old, now, own = {.ss_size = STACK, .ss_flags = none ? SS_DISABLE : 0};
    own.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(own.ss_sp != MAP_FAILED);
    while (!atomic_load(&stop_loops)) {
        CHECK_EQ(sigaltstack(&own, &old), 0);
        compute_for(25 * PIRN_MS);
        CHECK_EQ(sigaltstack(NULL, &now), 0);
        CHECK(same(&now, &own));
        CHECK_EQ(sigaltstack(&old, NULL), 0);
        pirn_yield(); /* on to another thread */
    }
    atomic_fetch_add(&used, is_used(own.ss_sp));
    CHECK_EQ(munmap(own.ss_sp, STACK), 0);
}

static void swap(bool none)
{
    needs_preemption();
    atomic_store(&stop_loops, 0);
    for (int i = 0; i < 2 * pirn_procs(0); i++)
        pirn_wg_go(&looping, swaps, none);
    await_preempted(20);
    end_loops();
}

TEST_RUN_ATTR(swapped_stack, PROCS, .timeout = 60)
{
    if (test_on_valgrind())
        SKIP("valgrind reports a look at what a handler left on its stack, which is meant");
    swap(false);
    CHECK_GT(atomic_load(&used), 0);
}

/* On the goroutine's own, which is large enough. */
TEST_RUN_ATTR(no_stack, PROCS, .timeout = 60)
{
    swap(true);
    CHECK_EQ(atomic_load(&used), 0);
}
